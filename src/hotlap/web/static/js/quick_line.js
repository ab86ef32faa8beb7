// Makes a line quicker: the lap time of a point mass on it, how bending the line changes that time, and a descent, with
// the arithmetic of the simulator's quick_line.py in the same order.

const GRAVITY_MPS2 = 9.81;
const AIR_DENSITY_KGPM3 = 1.225;
const DRIVEN_GRIP = 0.6;
const SOFT_MPS2 = 1;
export const STRIDES = [16, 8, 4, 2];
const ROUNDS = 200;
const FIRST_STEP_M = 0.2;
const LAST_STEP_M = 0.005;
const MEAN_DECAY = 0.9;
const SQUARE_DECAY = 0.97;

/** What limits the speed of the point mass. */
function pointMass(car) {
  const top = car.top_speed_mps;
  return {
    grip: car.friction * GRAVITY_MPS2,
    drag: (0.5 * AIR_DENSITY_KGPM3 * car.drag_area_m2) / car.mass_kg,
    power: car.power_w / car.mass_kg,
    force: car.drive_force_n / car.mass_kg,
    top2: top * top,
  };
}

/** Offsets of a line that a car is quicker on, given one; `points` has x, y, normals and limits of its points. */
export function quickenLine(points, offset, car) {
  const mass = pointMass(car);
  let found = offset;
  for (const stride of STRIDES) found = quicken(points, found, mass, stride, (FIRST_STEP_M * stride) / STRIDES[0]);
  return found;
}

/** Curvature and spacing of the points of a closed line, and its length. */
export function bend(x, y) {
  const count = x.length;
  const [curvature, spacing] = [new Float64Array(count), new Float64Array(count)];
  let length = 0;
  for (let k = 0; k < count; k += 1) {
    const [before, after] = [(k + count - 1) % count, (k + 1) % count];
    const [alongX, alongY] = [0.5 * (x[after] - x[before]), 0.5 * (y[after] - y[before])];
    const [bendX, bendY] = [x[before] - 2 * x[k] + x[after], y[before] - 2 * y[k] + y[after]];
    const squared = Math.max(alongX * alongX + alongY * alongY, 1e-9);
    spacing[k] = Math.sqrt(squared);
    curvature[k] = (alongX * bendY - alongY * bendX) / (squared * spacing[k]);
    length += spacing[k];
  }
  return { curvature, spacing, length };
}

/** Grip (m/s²) left for brakes or drive in a bend. */
function spareGrip(squared, curvature, mass) {
  const across = squared * curvature;
  return Math.sqrt(Math.max(mass.grip * mass.grip - across * across, 0));
}

function driveOf(squared, spare, mass) {
  return Math.min(mass.power / Math.sqrt(Math.max(squared, 1)), mass.force, DRIVEN_GRIP * spare);
}

/** Squared speeds, those before the drive limits them, where brakes and drive do, and the time. */
function limitSpeeds({ curvature, spacing }, mass) {
  const count = curvature.length;
  const [isBraked, isDriven] = [new Uint8Array(count), new Uint8Array(count)];
  const squared = curvature.map((each) => Math.min(mass.grip / Math.max(Math.abs(each), 1e-9), mass.top2));
  for (let step = 2 * count; step > 0; step -= 1) {
    const [k, before] = [step % count, (step - 1) % count];
    const spare = spareGrip(squared[k], curvature[k], mass);
    const limit = squared[k] + 2 * spacing[before] * (spare + mass.drag * squared[k]);
    if (limit < squared[before]) [squared[before], isBraked[before]] = [limit, 1];
  }
  const braked = squared.slice();
  for (let step = 0; step < 2 * count; step += 1) {
    const [k, after] = [step % count, (step + 1) % count];
    const drive = driveOf(squared[k], spareGrip(squared[k], curvature[k], mass), mass);
    const limit = squared[k] + 2 * spacing[k] * Math.max(drive - mass.drag * squared[k], 0);
    if (limit < squared[after]) [squared[after], isDriven[after]] = [limit, 1];
  }
  let time = 0;
  for (let k = 0; k < count; k += 1) time += spacing[k] / Math.sqrt(squared[k]);
  return { squared, braked, isBraked, isDriven, time };
}

/** The derivative of the time by each curvature. */
function slopesByCurvature({ curvature, spacing }, { squared, braked, isBraked, isDriven }, mass) {
  const count = curvature.length;
  const bySquared = squared.map((each, k) => (-0.5 * spacing[k]) / (each * Math.sqrt(each)));
  const byCurvature = new Float64Array(count);
  for (let step = 2 * count - 1; step >= 0; step -= 1) {
    const [k, after] = [step % count, (step + 1) % count];
    const slope = bySquared[after];
    if (!isDriven[after] || slope === 0) continue;
    const across = squared[k] * curvature[k];
    const spare = spareGrip(squared[k], curvature[k], mass);
    const drive = driveOf(squared[k], spare, mass);
    const reach = 2 * spacing[k];
    let [bySpeed, byBend] = [0, 0];
    if (drive === mass.power / Math.sqrt(Math.max(squared[k], 1))) {
      bySpeed = (-0.5 * drive) / squared[k];
    } else if (drive < mass.force && spare > SOFT_MPS2) {
      bySpeed = (-DRIVEN_GRIP * across * curvature[k]) / spare;
      byBend = (-DRIVEN_GRIP * across * squared[k]) / spare;
    }
    bySquared[after] = 0;
    bySquared[k] += slope * Math.max(1 + reach * (bySpeed - mass.drag), 0);
    byCurvature[k] += slope * reach * byBend;
  }
  for (let step = 1; step <= 2 * count; step += 1) {
    const [k, before] = [step % count, (step - 1) % count];
    const slope = bySquared[before];
    if (!isBraked[before] || slope === 0) continue;
    const across = braked[k] * curvature[k];
    const spare = spareGrip(braked[k], curvature[k], mass);
    const reach = 2 * spacing[before];
    const isSoft = spare <= SOFT_MPS2;
    const bySpeed = isSoft ? 0 : (-across * curvature[k]) / spare;
    const byBend = isSoft ? 0 : (-across * braked[k]) / spare;
    bySquared[before] = 0;
    bySquared[k] += slope * Math.max(1 + reach * (mass.drag + bySpeed), 0);
    byCurvature[k] += slope * reach * byBend;
  }
  for (let k = 0; k < count; k += 1) {
    const size = Math.abs(curvature[k]);
    if (mass.grip / Math.max(size, 1e-9) < mass.top2) {
      byCurvature[k] -= (bySquared[k] * mass.grip) / (size * curvature[k]);
    }
  }
  return byCurvature;
}

/** The derivative of the time by each point's offset. */
function slopesByOffset({ curvature, spacing }, squared, byCurvature) {
  const count = curvature.length;
  const perSquare = byCurvature.map((each, k) => each / (spacing[k] * spacing[k]));
  return curvature.map((each, k) => {
    const [before, after] = [(k + count - 1) % count, (k + 1) % count];
    let slope = perSquare[before] - 2 * perSquare[k] + perSquare[after];
    slope += each * each * byCurvature[k];
    return slope - (each * spacing[k]) / Math.sqrt(squared[k]);
  });
}

/** The weights of the four coefficients around a point, `part` of the way from the second to the third. */
function splineWeights(part) {
  const rest = 1 - part;
  return [
    (rest * rest * rest) / 6,
    (3 * part * part * part - 6 * part * part + 4) / 6,
    (3 * rest * rest * rest - 6 * rest * rest + 4) / 6,
    (part * part * part) / 6,
  ];
}

/** The offsets shifted by the spline, within limits. */
function shift({ lowest, highest }, offset, shifts, stride) {
  const shifted = new Float64Array(offset.length);
  for (let part = 0; part < stride; part += 1) {
    const weights = splineWeights(part / stride);
    for (let j = 0; j < shifts.length; j += 1) {
      const k = j * stride + part;
      let moved = offset[k];
      for (let near = 0; near < 4; near += 1) {
        moved += weights[near] * shifts[(j + near + shifts.length - 1) % shifts.length];
      }
      shifted[k] = Math.min(Math.max(moved, lowest[k]), highest[k]);
    }
  }
  return shifted;
}

/** The derivatives by the spline's coefficients, given those by the points' offsets. */
function gather(slopes, stride, numShifts) {
  const byShift = new Float64Array(numShifts);
  for (let part = 0; part < stride; part += 1) {
    const weights = splineWeights(part / stride);
    for (let j = 0; j < numShifts; j += 1) {
      const slope = slopes[j * stride + part];
      for (let near = 0; near < 4; near += 1) byShift[(j + near + numShifts - 1) % numShifts] += weights[near] * slope;
    }
  }
  return byShift;
}

/** The limits of each coefficient: what the points nearest to it allow. */
function limitShifts({ lowest, highest }, offset, stride, numShifts) {
  const count = offset.length;
  const [least, most] = [new Float64Array(numShifts).fill(-1e9), new Float64Array(numShifts).fill(1e9)];
  for (let j = 0; j < numShifts; j += 1) {
    for (let away = 1 - stride; away < stride; away += 1) {
      const k = (j * stride + away + count) % count;
      least[j] = Math.max(least[j], lowest[k] - offset[k]);
      most[j] = Math.min(most[j], highest[k] - offset[k]);
    }
    [least[j], most[j]] = [Math.min(least[j], 0), Math.max(most[j], 0)];
  }
  return { least, most };
}

/** Move the points along their normals, within limits, to lessen the time: Adam's steps on a spline's coefficients. */
function quicken(points, offset, mass, stride, firstStepM) {
  const numShifts = offset.length / stride;
  const { least, most } = limitShifts(points, offset, stride, numShifts);
  const [shifts, mean, square] = Array.from({ length: 3 }, () => new Float64Array(numShifts));
  let [best, bestTime] = [shifts.slice(), 1e18];
  for (let number = 0; number < ROUNDS; number += 1) {
    const shifted = shift(points, offset, shifts, stride);
    const line = bend(
      points.x.map((value, k) => value + points.normalX[k] * shifted[k]),
      points.y.map((value, k) => value + points.normalY[k] * shifted[k]),
    );
    const speeds = limitSpeeds(line, mass);
    if (speeds.time < bestTime) [best, bestTime] = [shifts.slice(), speeds.time];
    const slopes = slopesByOffset(line, speeds.squared, slopesByCurvature(line, speeds, mass));
    const byShift = gather(slopes, stride, numShifts);
    const stepM = LAST_STEP_M + (firstStepM - LAST_STEP_M) * (1 - number / ROUNDS);
    for (let j = 0; j < numShifts; j += 1) {
      mean[j] = MEAN_DECAY * mean[j] + (1 - MEAN_DECAY) * byShift[j];
      square[j] = SQUARE_DECAY * square[j] + (1 - SQUARE_DECAY) * byShift[j] * byShift[j];
      const next = shifts[j] - (stepM * mean[j]) / (Math.sqrt(square[j]) + 1e-9);
      shifts[j] = Math.min(Math.max(next, least[j]), most[j]);
    }
  }
  return shift(points, offset, best, stride);
}
