/** Every fault that the simulator knows, as data: the console and the HTTP interface list this table. */

/** What a fault's `target` names; without a target it hits everything of that kind. */
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
  /** An instant fault cannot do without a target. */
  needsTarget?: true
}

const kinds = {
  jam: {
    description:
      'the motor starts and stalls on the way: a lift or door stops between its ends, a row turns partly',
    targets: ['bin', 'cabinet'],
    probability: 1,
  },
  jam_without_motion: {
    description: 'the motor stalls at once; its encoder counts nothing and nothing moves',
    targets: ['bin', 'cabinet'],
    probability: 1,
  },
  missed_drop: {
    description: 'a unit falls into the bin, and the drop sensor does not see it',
    targets: ['cabinet'],
    probability: 1,
  },
  empty_turn: {
    description: 'the row turns and nothing falls',
    targets: ['cabinet'],
    probability: 1,
  },
  late_drop: {
    description: 'the unit hangs, and falls 2 to 15 seconds after the turn, seen by the sensor',
    targets: ['cabinet'],
    probability: 1,
  },
  double_drop: {
    description: 'one turn lets two units fall; the sensor sees both',
    targets: ['cabinet'],
    probability: 1,
  },
  slow_motion: {
    description: 'motions take four times as long',
    targets: ['bin', 'cabinet'],
    probability: 1,
  },
  obstructed_door: {
    description: 'something stands in the closing door, which opens again',
    targets: ['bin'],
    probability: 1,
  },
  sensor_bounce: {
    description: 'a sensor that changes flutters for a fifth of a second before it settles',
    targets: ['bin', 'door'],
    probability: 1,
  },
  sensor_fault: {
    description: 'the end switches of door and lift say nothing',
    targets: ['bin'],
    probability: 1,
  },
  weak_supply: {
    description: 'the supply of the motors is too low: operations fail before the motor starts',
    targets: ['bin', 'cabinet', 'controller'],
    probability: 1,
  },
  flash_fault: {
    description: 'the memory of operations cannot be written: commands are refused',
    targets: ['controller'],
    probability: 1,
  },
  silent_port: {
    description: 'the serial line stays open, and nothing passes it in either direction',
    targets: ['controller'],
    probability: 1,
  },
  corrupted_lines: {
    description: 'lines are damaged on their way, in both directions',
    targets: ['controller'],
    probability: 0.2,
  },
  lost_replies: {
    description: 'lines from the controller to the hub are lost',
    targets: ['controller'],
    probability: 0.5,
  },
  brown_out: {
    description: 'the controller loses its power now, for for_ms (default 1000), and keeps its memory',
    targets: ['controller', 'device'],
    probability: 1,
    instant: true,
  },
  brown_out_in_motion: {
    description:
      'the controller loses its power for a second in the midst of its next motion, and keeps its memory',
    targets: ['bin', 'cabinet', 'controller'],
    probability: 1,
    once: true,
  },
  memory_loss: {
    description: 'the controller loses its power now, for for_ms (default 1000), and its memory for good',
    targets: ['controller', 'device'],
    probability: 1,
    instant: true,
  },
  door_forced: {
    description: 'somebody forces a door open, now, whatever its lock or motor',
    targets: ['bin', 'door'],
    probability: 1,
    instant: true,
    needsTarget: true,
  },
  warm_fridge: {
    description: 'the fridge does not cool: its temperature rises towards the room’s',
    targets: ['fridge'],
    probability: 1,
  },
} as const satisfies Record<string, FaultKind>

export type FaultType = keyof typeof kinds
export const faultKinds: Record<FaultType, FaultKind> = kinds
export const faultTypes = Object.keys(kinds) as [FaultType, ...FaultType[]]
