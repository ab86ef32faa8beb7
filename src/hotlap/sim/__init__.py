"""The world as numbers: car, tyres, track, rays, laps and rewards, compiled; knows no Gym and no files."""
