import { Hello } from '../../protocol/mqtt/session.ts'
import { Command } from '../../protocol/mqtt/command.ts'
import { downTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { Clock } from '../../protocol/model/runtime.ts'

/** Observes the hub's line: which commands came to it in their session and within their time. */
export class LineObserver {
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
      const hello = upTopic(this.#hubId, 'hello')
      return {
        publish(topic, payload, how) {
          if (topic === hello) session = Hello.parse(JSON.parse(payload)).session
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

  /** Commands that came only in another session or after their time. */
  staleOnly(): Set<string> {
    return new Set([...this.#stale].filter((id) => !this.#fresh.has(id)))
  }

  get seen(): { fresh: number; stale: number } {
    return { fresh: this.#fresh.size, stale: this.#stale.size }
  }
}
