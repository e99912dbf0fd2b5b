import type { DeviceDescription } from '../../../protocol/model/hardware.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { uuidOfOp } from '../../../protocol/serial/codec.ts'
import type { Refusal } from '../../../protocol/serial/frames.ts'
import type { Bin } from '../../physics/bin.ts'
import type { Cabinet } from '../../physics/cabinet.ts'
import type { Behaviour, Command, Run } from './behaviour.ts'

type CabinetDescription = Extract<DeviceDescription, { kind: 'cabinet' }>

export interface CabinetContext {
  clock: Clock
  /** A bin on the same controller. */
  binOf(number: number): Bin | undefined
  isRunning(device: string): boolean
  /** How long a fall is waited for after the turn (SPEC §6). */
  dropWindowMs: number
}

/** A cabinet of vending rows: one turn of a row, and a fall seen or not. */
export function cabinetBehaviour(
  cabinet: Cabinet,
  description: CabinetDescription,
  context: CabinetContext,
): Behaviour {
  const { clock, dropWindowMs } = context

  function refusal({ shelf, row, bin }: Command): Refusal | undefined {
    const rows = description.shelves.find((one) => one.shelf === shelf)?.rows ?? 0
    if (row === undefined || row < 1 || row > rows || !bin) return 'bad_argument'
    const target = context.binOf(bin)
    if (!target) return undefined
    if (context.isRunning(target.device)) return 'busy'
    return target.door() === 'closed' && target.lift() === 'down' ? undefined : 'interlock'
  }

  function start(run: Run): () => void {
    const { shelf, row, bin, op } = run.command
    let cancelWindow = (): void => {}
    const motion = cabinet.turn({ shelf: shelf!, row: row!, bin: bin! }, uuidOfOp(op), (end) => {
      run.motorOff()
      const moved = motion.moved()
      const why = end === 'arrived' ? 'no_drop' : 'jam'
      if (!moved) run.finish({ why, moved })
      else if (end === 'arrived' && run.drops() > 0) run.finish({ moved })
      else
        cancelWindow = clock.after(dropWindowMs, () =>
          run.finish(end === 'arrived' && run.drops() > 0 ? { moved } : { why, moved }),
        )
    })
    return () => {
      cancelWindow()
      motion.stop()
    }
  }

  return {
    device: cabinet.device,
    actions: ['dispense'],
    refusal,
    isSettled: () => false,
    start,
    sensed: () => ({}),
    onSense: () => () => {},
  }
}
