import type { Hello, Welcome } from '../../protocol/mqtt/session.ts'
import { answerHellos, type HelloContext } from './hello.ts'
import type { Said } from './leases.ts'
import { isForNobody } from './receiver.ts'

interface Asked extends Said {
  welcome: (welcome: Welcome | undefined) => void
  fail: (error: unknown) => void
}

/**
 * Answers hellos. One transaction answers all hellos that arrived while others were being answered. So a single hub
 * waits for no other, and thousands share each statement and commit.
 */
export class Welcomes {
  readonly #context: HelloContext
  readonly #atOnce: number
  #asked: Asked[] = []
  /** Running transactions. */
  #desks = 0

  /** `atOnce`: more than one, so that the database and this process can work at the same time. */
  constructor(context: HelloContext, { atOnce }: { atOnce: number }) {
    this.#context = context
    this.#atOnce = atOnce
  }

  /** Like `answerHellos`. Another hello of a hub arrives only after this one is answered. */
  answer(hubId: number, hello: Hello): Promise<Welcome | undefined> {
    return new Promise((welcome, fail) => {
      this.#asked.push({ hubId, hello, welcome, fail })
      if (this.#desks < this.#atOnce) void this.#answerAll()
    })
  }

  async #answerAll(): Promise<void> {
    this.#desks += 1
    while (this.#asked.length > 0) {
      const asked = this.#asked
      this.#asked = []
      await this.#together(asked)
    }
    this.#desks -= 1
  }

  async #together(asked: readonly Asked[]): Promise<void> {
    try {
      const welcomes = await answerHellos(this.#context, asked)
      for (const { hubId, welcome } of asked) welcome(welcomes.get(hubId))
    } catch (error) {
      if (asked.length === 1 || isForNobody(error)) for (const { fail } of asked) fail(error)
      // A hello that cannot be answered must not delay those of other hubs.
      else for (const one of asked) await this.#together([one])
    }
  }
}
