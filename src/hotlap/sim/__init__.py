"""The compiled simulator: car, tyres, track, rays, laps and rewards. It knows neither Gymnasium nor track files."""
