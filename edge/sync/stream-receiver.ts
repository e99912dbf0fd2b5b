import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Ack, Batch } from '../../protocol/mqtt/session.ts'
import type { Inbox, LeaveOut } from '../journal/inbox.ts'

export interface StreamReceiverOptions {
  inbox: Inbox
  log: Log
  checkpoint: Checkpoint
  applyEntry(body: unknown, leaveOut: LeaveOut): void
  publish(ack: Ack): void
  /** Called for a batch of an epoch that no welcome has announced: the welcome was lost, or is late. */
  onForeign(): void
}

export type StreamReceiver = ReturnType<typeof createStreamReceiver>

/** The hub's receiver of the cloud's stream over one connection. It acknowledges only after its commit. */
export function createStreamReceiver(options: StreamReceiverOptions) {
  const { inbox, log, checkpoint } = options

  function acknowledge(position: { epoch: string; cursor: number; tag: number }, flags: Partial<Ack>): void {
    checkpoint('sync.before-ack')
    options.publish({ stream: 'outbox', ...position, resend: false, fork: false, ...flags })
    checkpoint('sync.after-ack')
  }

  return {
    /** Follows the epoch of the cloud's stream that the welcome announced. */
    takeUp(epoch: string): void {
      const judged = inbox.takeUp(epoch)
      if (judged === 'new') log.info({ epoch }, "the cloud's stream has a new epoch")
      if (judged === 'left') acknowledge({ epoch, cursor: 0, tag: 0 }, { fork: true })
    },
    receive(batch: Batch): void {
      const kind = inbox.receive(batch, (body, leaveOut) => options.applyEntry(body, leaveOut))
      if (kind === 'foreign') return options.onForeign()
      const { cursor, tag } = inbox.position()
      acknowledge({ epoch: batch.epoch, cursor, tag }, { resend: kind === 'gap', fork: kind === 'fork' })
    },
  }
}
