// What tests and tinkerers can ask the page.

/** The view, the track, the cars and what was said last, as plain values. */
export function pageState({ view, track, server, stage, views, message }) {
  return {
    view,
    track: track?.id ?? null,
    connected: server.connected,
    tick: stage.tick,
    racing: view === 'race' && views.race.isRacing,
    cars: stage.cars.map((car) => ({
      id: car.id,
      kind: car.kind,
      x: car.pose.x,
      y: car.pose.y,
      speed: car.pose.speed,
      lap: stage.world.read.lap(car.index),
      lap_time_sec: stage.world.lapClock(car.index),
      best_lap_time_sec: stage.best(car)?.time ?? null,
    })),
    delta_sec: view === 'race' ? views.race.delta : null,
    message,
  };
}
