import { z } from 'zod'
import type { Cancel } from '../../protocol/model/runtime.ts'
import { callTopic, goneTopic, hereTopic } from '../../protocol/mqtt/topics.ts'
import { background } from '../platform/work/background.ts'
import type { CloudContext } from '../platform/context.ts'
import { decode } from './decode.ts'
import { otherHolders, releaseLeases } from './leases.ts'

export interface PeersOptions {
  context: CloudContext
  processId: string
  /** How long a process that is asked may take to answer. */
  answerMs: number
  /** Publishes, where the broker is connected. */
  publish: (topic: string, payload: string) => void
  /** The leases of these hubs were ended: they are anybody's. None where another process has ended them. */
  onReleased: (hubIds: readonly number[]) => void
}

/** The other cloud processes (SPEC §7): which of them have gone, and with them their leases. */
export interface Peers {
  readonly topics: readonly string[]
  readonly will: { topic: string; payload: string }
  /** The broker was found: whoever holds a hub is asked whether it lives. Its will may have gone unheard. */
  connected(): void
  disconnected(): void
  /** False for a message that has nothing to do with it. */
  receive(topic: string, payload: string): boolean
  /** Leaves this process's own hubs to the others. */
  leave(): Promise<void>
}

const Process = z.object({ process_id: z.string() })

export function createPeers(options: PeersOptions): Peers {
  const { context, processId, answerMs, publish, onReleased } = options
  const { db, runtime } = context
  const own = JSON.stringify({ process_id: processId })
  const heard = new Set<string>()
  let cancelCall: Cancel | undefined

  async function release(other: string, through?: number): Promise<void> {
    const hubIds = await releaseLeases(db.kysely, other, runtime.clock.now(), through)
    onReleased(hubIds)
  }

  /** Ends the leases of those that do not answer. One that lives all the same does no harm (SPEC §7). */
  async function callAll(): Promise<void> {
    const holders = await otherHolders(db.kysely, processId, runtime.clock.now())
    if (holders.length === 0) return
    heard.clear()
    for (const holder of holders) publish(callTopic, JSON.stringify({ process_id: holder.processId }))
    cancelCall?.()
    cancelCall = runtime.clock.after(answerMs, () =>
      background(context, 'processes that do not answer', async () => {
        for (const holder of holders)
          if (!heard.has(holder.processId)) {
            context.log.warn({ processId: holder.processId }, 'a process that held hubs does not answer')
            // What it has renewed meanwhile proves that it lives.
            await release(holder.processId, holder.until)
          }
      }),
    )
  }

  return {
    topics: [goneTopic, callTopic, hereTopic],
    will: { topic: goneTopic, payload: own },
    connected: () => background(context, 'call of the other processes', callAll),
    disconnected: () => cancelCall?.(),
    receive(topic, payload) {
      if (topic !== goneTopic && topic !== callTopic && topic !== hereTopic) return false
      const other = decode(Process, payload)?.process_id
      if (other === undefined) return true
      if (topic === hereTopic) heard.add(other)
      else if (topic === callTopic) {
        if (other === processId) publish(hereTopic, own)
      } else if (other !== processId)
        // Where that one only lost its connection, it will find out when it is back.
        background(context, 'leases of a process that is gone', () => release(other))
      return true
    },
    async leave() {
      cancelCall?.()
      await releaseLeases(db.kysely, processId, runtime.clock.now())
      publish(goneTopic, own)
    },
  }
}
