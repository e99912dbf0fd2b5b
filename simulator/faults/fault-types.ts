/** Every fault that the simulator knows, as data: the console and the HTTP interface list this table. */

/** The kind of thing that a fault's `target` names. A fault without a target affects all of that kind. */
export type FaultTarget = 'bin' | 'cabinet' | 'fridge' | 'door' | 'controller' | 'device'

export interface FaultKind {
  description: string
  targets: readonly FaultTarget[]
  /** Chance on each occasion, where the fault was raised without `probability`. */
  probability: number
  /** It happens when it is raised, and is over. */
  instant?: true
  /** It is over once it has struck. */
  once?: true
  /** Its target may be one row of a cabinet: `row 1/2/3`. */
  hitsRows?: true
  /** It cannot do without a target. */
  needsTarget?: true
  /** A wiring mistake of people: it never occurs on its own, and motions under it happened at another hub. */
  isWiring?: true
}

/** A row of the table. By default a fault occurs on every occasion until it is cleared. */
const fault = (
  description: string,
  targets: readonly FaultTarget[],
  rest: Partial<Omit<FaultKind, 'description' | 'targets'>> = {},
): FaultKind => ({ description, targets, probability: 1, ...rest })

const kinds = {
  jam: fault(
    'the motor starts and stalls on the way: a lift or door stops between its ends, a row turns partly',
    ['bin', 'cabinet'],
    { hitsRows: true },
  ),
  jam_without_motion: fault(
    'the motor stalls at once; its encoder counts nothing and nothing moves',
    ['bin', 'cabinet'],
    {
      hitsRows: true,
    },
  ),
  missed_drop: fault('a unit falls into the bin, and the drop sensor does not see it', ['cabinet'], {
    hitsRows: true,
  }),
  empty_turn: fault('the row turns and nothing falls', ['cabinet'], { hitsRows: true }),
  late_drop: fault(
    'the unit hangs, and falls 2 to 15 seconds after the turn, seen by the sensor',
    ['cabinet'],
    {
      hitsRows: true,
    },
  ),
  double_drop: fault('one turn lets two units fall; the sensor sees both', ['cabinet'], { hitsRows: true }),
  slow_motion: fault('motions take four times as long', ['bin', 'cabinet'], { hitsRows: true }),
  obstructed_door: fault('something stands in the closing door, which opens again', ['bin']),
  sensor_bounce: fault('a sensor that changes flutters for a fifth of a second before it settles', [
    'bin',
    'door',
  ]),
  sensor_fault: fault('the end switches of door and lift say nothing', ['bin']),
  weak_supply: fault('the supply of the motors is too low: operations fail before the motor starts', [
    'bin',
    'cabinet',
    'controller',
  ]),
  flash_fault: fault('the memory of operations cannot be written: commands are refused', ['controller']),
  silent_port: fault('the serial line stays open, and nothing passes it in either direction', ['controller']),
  corrupted_lines: fault('lines are damaged on their way, in both directions', ['controller'], {
    probability: 0.2,
  }),
  lost_replies: fault('lines from the controller to the hub are lost', ['controller'], { probability: 0.5 }),
  crossed_cable: fault(
    'the cables of the controller and of the next one are exchanged: each speaks on the other’s line',
    ['controller'],
    { needsTarget: true, isWiring: true },
  ),
  crossed_bins: fault(
    'the cables of the bin and of the next one of its controller are exchanged: each moves and reports as the other',
    ['bin'],
    { needsTarget: true, isWiring: true },
  ),
  crossed_rows: fault(
    'the motors of rows 1 and 2 of each shelf are exchanged: each turns when the other is meant',
    ['cabinet'],
    { needsTarget: true, isWiring: true },
  ),
  inverted_sensor: fault(
    'the sensor reports open in place of closed, and closed in place of open',
    ['door'],
    {
      needsTarget: true,
      isWiring: true,
    },
  ),
  brown_out: fault(
    'the controller loses its power now, for for_ms (default 1000), and keeps its memory',
    ['controller', 'device'],
    { instant: true },
  ),
  brown_out_in_motion: fault(
    'the controller loses its power for a second in the midst of its next motion, and keeps its memory',
    ['bin', 'cabinet', 'controller'],
    { once: true },
  ),
  memory_loss: fault(
    'the controller loses its power now, for for_ms (default 1000), and its memory for good',
    ['controller', 'device'],
    { instant: true },
  ),
  used_board: fault(
    'the controller is replaced, for for_ms (default 1000) without power, by a board that has served another hub',
    ['controller', 'device'],
    { instant: true },
  ),
  door_forced: fault('a person forces a door open at once, whatever its lock or motor', ['bin', 'door'], {
    instant: true,
    needsTarget: true,
  }),
  frozen_probe: fault('the probe of the fridge repeats the value that it reads now', ['fridge']),
  broken_probe: fault('the probe of the fridge gives no reading', ['fridge']),
  probe_outliers: fault(
    'the probe of the fridge reads nonsense now and then: 85, -55, 30 °C, or what it should read',
    ['fridge'],
    {
      probability: 0.3,
    },
  ),
  blinking_contact: fault(
    'a contact flickers without end: the light barrier of a bin, the contact of a door',
    ['bin', 'door'],
  ),
  warm_fridge: fault('the fridge does not cool: its temperature rises towards the room’s', ['fridge']),
} satisfies Record<string, FaultKind>

export type FaultType = keyof typeof kinds
export const faultKinds: Record<FaultType, FaultKind> = kinds
export const faultTypes = Object.keys(kinds) as [FaultType, ...FaultType[]]
