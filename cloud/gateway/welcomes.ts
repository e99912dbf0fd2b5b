import type { Hello, Welcome } from '../../protocol/mqtt/session.ts'
import { answerHellos, type Greeter } from './hello.ts'
import type { Said } from './leases.ts'
import { isForNobody } from './receiver.ts'

interface Asked extends Said {
  welcome: (welcome: Welcome | undefined) => void
  fail: (error: unknown) => void
}

/**
 * Answers hellos: all that have come while others were being answered by one transaction. So a hub that comes alone waits for
 * nobody, and of thousands that come at once many share each statement and each commit.
 */
export class Welcomes {
  readonly #greeter: Greeter
  readonly #atOnce: number
  #asked: Asked[] = []
  /** Transactions under way. */
  #desks = 0

  /** `atOnce`: more than one, so that the database has something to do while this process has. */
  constructor(greeter: Greeter, { atOnce }: { atOnce: number }) {
    this.#greeter = greeter
    this.#atOnce = atOnce
  }

  /** As `answerHellos`. Of one hub another hello comes when this one is answered. */
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
      const welcomes = await answerHellos(this.#greeter, asked)
      for (const { hubId, welcome } of asked) welcome(welcomes.get(hubId))
    } catch (error) {
      if (asked.length === 1 || isForNobody(error)) for (const { fail } of asked) fail(error)
      // What cannot be answered of one hub holds up no other.
      else for (const one of asked) await this.#together([one])
    }
  }
}
