import { Batch, Hello } from '../../protocol/mqtt/session.ts'
import { Command } from '../../protocol/mqtt/command.ts'
import { downTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { Clock } from '../../protocol/model/runtime.ts'

/** Listens in on the hub's line: which commands came to it under the session and within the time that they were meant for. */
export class LineWitness {
  readonly entries = new EntryWitness()
  readonly #hubId: number
  readonly #fresh = new Set<string>()
  readonly #stale = new Set<string>()

  constructor(hubId: number) {
    this.#hubId = hubId
  }

  tap(open: OpenTransport, clock: Clock): OpenTransport {
    return (options, handlers) => {
      let session: string | undefined
      const transport = open(options, {
        ...handlers,
        onMessage: (topic, payload) => {
          if (topic === downTopic(this.#hubId, 'command')) this.#note(payload, session, clock)
          return handlers.onMessage(topic, payload)
        },
      })
      const { entries } = this
      const up = (kind: 'entries' | 'hello') => upTopic(this.#hubId, kind)
      return {
        publish(topic, payload, how) {
          if (topic === up('entries')) entries.note(payload)
          if (topic === up('hello')) session = Hello.parse(JSON.parse(payload)).session
          return transport.publish(topic, payload, how)
        },
        close: () => transport.close(),
      }
    }
  }

  #note(payload: string, session: string | undefined, clock: Clock): void {
    const command = Command.parse(JSON.parse(payload))
    const fits = command.session === session && clock.monotonic() <= command.expires_monotonic
    if (fits) this.#fresh.add(command.command_id)
    else this.#stale.add(command.command_id)
  }

  /** Commands that came only when it was wrong to obey them. */
  staleOnly(): Set<string> {
    return new Set([...this.#stale].filter((id) => !this.#fresh.has(id)))
  }

  get seen(): { fresh: number; stale: number } {
    return { fresh: this.#fresh.size, stale: this.#stale.size }
  }
}

/** What the hub has sent of its ledger, whoever heard it. */
class EntryWitness {
  readonly #epochs = new Set<string>()
  readonly #alarms = new Set<number>()

  note(payload: string): void {
    const { epoch, first, entries } = Batch.parse(JSON.parse(payload))
    this.#epochs.add(epoch)
    for (const [index, { body }] of entries.entries())
      if ((body as { kind?: unknown }).kind === 'alarm') this.#alarms.add(first + index)
  }

  /** How many alarms there were. A new epoch tells again what the old one had not acknowledged: then nobody can say. */
  alarms(): number | undefined {
    return this.#epochs.size === 1 ? this.#alarms.size : undefined
  }
}
