import { uuidOfOp } from '../../../protocol/serial/codec.ts'
import type { Bin, BinAction } from '../../physics/bin.ts'
import type { Behaviour, Command, Run } from './behaviour.ts'

const goal = { open_door: 'open', close_door: 'closed', raise_lift: 'up', lower_lift: 'down' } as const

const isDoor = (action: Command['act']): boolean => action === 'open_door' || action === 'close_door'

/** A delivery bin: a door, a lift, and the interlock between them (SPEC §6). */
export function binBehaviour(bin: Bin): Behaviour {
  const reading = (action: BinAction): string => (isDoor(action) ? bin.door() : bin.lift())

  function start(run: Run): () => void {
    const action = run.command.act as BinAction
    const motion = bin.run(action, uuidOfOp(run.command.op), (end) => {
      release()
      run.motorOff()
      const moved = motion.moved()
      if (end === 'stalled') run.finish({ why: 'jam', moved })
      else if (end === 'obstructed') run.finish({ why: 'obstructed', moved })
      else if (reading(action) === goal[action]) run.finish({ moved })
      else run.finish({ why: 'sensor_fault', moved })
    })
    const release = isDoor(action)
      ? () => {}
      : bin.onSense(() => {
          if (bin.door() === 'closed') return
          release()
          motion.stop()
          run.motorOff()
          run.finish({ why: 'interlock', moved: motion.moved() })
        })
    return () => {
      release()
      motion.stop()
    }
  }

  return {
    device: bin.device,
    actions: ['open_door', 'close_door', 'raise_lift', 'lower_lift'],
    refusal: ({ act }) => (!isDoor(act) && bin.door() !== 'closed' ? 'interlock' : undefined),
    isSettled: ({ act }) => reading(act as BinAction) === goal[act as BinAction],
    start,
    sensed: () => ({ door: bin.door(), lift: bin.lift(), occ: bin.occupied() }),
    onSense: (listener) => bin.onSense(listener),
  }
}
