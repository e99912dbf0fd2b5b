import type { CloudContext } from '../platform/context.ts'
import { isolated } from '../platform/work/background.ts'

/** The work of one hub, in the order of its arrival. */
export class Mailbox {
  readonly #ports: { context: CloudContext; hubId: number; settings: { mailbox: number } }
  /** Resolves when all posted work is done, or has failed. */
  #done: Promise<unknown> = Promise.resolve()
  #posted = 0
  readonly #waiting = new Set<string>()
  #hasEnded = false

  constructor(ports: { context: CloudContext; hubId: number; settings: { mailbox: number } }) {
    this.#ports = ports
  }

  get isEmpty(): boolean {
    return this.#posted === 0
  }

  /** Whether messages that the hub repeats are dropped. */
  get isFull(): boolean {
    return this.#posted >= this.#ports.settings.mailbox
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Resolves when the work is done, or has failed. */
  async post(during: string, work: () => Promise<void>): Promise<void> {
    if (this.#hasEnded) return
    const { context, hubId } = this.#ports
    this.#posted += 1
    const done = this.#done.then(() => isolated(context, `hub ${hubId}: ${during}`, work))
    this.#done = done.finally(() => (this.#posted -= 1))
    await done
  }

  /** Posts work for a message that the hub repeats, unless work of the same kind waits. */
  postOnce(during: string, work: () => Promise<void>): void {
    if (this.isFull || this.#waiting.has(during)) return
    this.#waiting.add(during)
    void this.post(during, () => {
      this.#waiting.delete(during)
      return work()
    })
  }

  /** Accepts no more work; resolves when the running work is done. */
  async end(): Promise<void> {
    this.#hasEnded = true
    await this.#done
  }
}
