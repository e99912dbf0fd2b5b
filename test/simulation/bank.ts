import { ProcessorUnavailable, type CardProcessor } from '../../cloud/commerce/processors/processor.ts'
import { createSandbox, sandboxWork } from '../../cloud/commerce/processors/sandbox/sandbox.ts'
import { receiveWebhook } from '../../cloud/commerce/payments/webhook.ts'
import { ApiError } from '../../cloud/platform/api-error.ts'
import type { CloudSettings } from '../../cloud/platform/settings/limits.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import type { Chance } from './chance.ts'
import type { CloudNode } from './cloud-node.ts'
import type { Coverage } from './coverage.ts'
import { Crash, type Life, type Scheduler } from './scheduler.ts'
import { testContext } from '../world/context.ts'

const SECRET = 'webhook-secret'

export interface BankWeather {
  /** The processor does not answer; in half of the cases it has executed the request. */
  unavailable: number
  /** An event is delivered a second time, much later, or late. */
  repeatEvent: number
  loseEvent: number
}

export const openBank: BankWeather = { unavailable: 0, repeatEvent: 0, loseEvent: 0 }

interface Parts {
  scheduler: Scheduler
  chance: Chance
  coverage: Coverage
  settings: CloudSettings
  /** One of the cloud's processes, chosen by the load balancer; undefined if none is up. */
  receiver(): CloudNode | undefined
}

/** The card processor beside the cloud: it never dies, and has its own books. */
export class Bank {
  readonly #parts: Parts
  readonly #life: Life
  readonly db: CloudDatabase
  weather: BankWeather = openBank

  constructor(parts: Parts, books: Buffer) {
    this.#parts = parts
    this.#life = parts.scheduler.newLife('processor', () => {})
    this.db = openDatabase({ url: 'sqlite::memory:', sqlite: new Sqlite(books) })
  }

  /** Starts the delivery of its events. */
  start(): void {
    const { scheduler, chance, settings } = this.#parts
    const runtime = { clock: scheduler.clock(this.#life, () => 0), random: chance }
    const context = testContext(this.db, runtime, {
      settings,
      onFault: (error) => scheduler.report(error, this.#life),
    })
    const deliver = (body: string, signature: string): Promise<boolean> => this.#deliver(body, signature)
    new WorkRunner(context, sandboxWork({ context, secret: SECRET, deliver })).start()
  }

  async #deliver(body: string, signature: string): Promise<boolean> {
    const { scheduler, chance, coverage } = this.#parts
    const receiver = this.#parts.receiver()
    const { life, services } = receiver ?? {}
    if (!life || !services) return false
    if (chance.happens(this.weather.loseEvent)) {
      coverage.hit('fault webhook lost')
      return false
    }
    const apply = (): Promise<void> => receiveWebhook(services.context, SECRET, body, signature)
    try {
      await withDeadline(apply(), (run) => scheduler.plan(this.#life, 10_000, run))
    } catch (error) {
      // A cloud with a wrong clock regards the signature as too old.
      if (error instanceof NoAnswer || error instanceof ApiError) return false
      scheduler.report(error, life)
      return false
    }
    if (!chance.happens(this.weather.repeatEvent)) return true
    coverage.hit('fault webhook repeated')
    return false
  }

  /** The processor as seen by one life of the cloud. */
  processorFor(life: Life, random: Random, checkpoint: Checkpoint): CardProcessor {
    const clock = this.#parts.scheduler.clock(this.#life, () => 0)
    const processor = createSandbox({ db: this.db, runtime: { clock, random }, checkpoint })
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      const { chance, coverage } = this.#parts
      if (!chance.happens(this.weather.unavailable)) return work()
      coverage.hit('fault processor unavailable')
      if (chance.happens(0.5)) await work()
      if (!life.alive) throw new Crash(life, 'processor call')
      throw new ProcessorUnavailable('the simulated processor did not answer')
    }
    return {
      name: processor.name,
      leastAmount: (currency) => processor.leastAmount(currency),
      savesMethod: (method) => processor.savesMethod(method),
      knowsMethod: (method, type) => processor.knowsMethod(method, type),
      createIntent: (request) => call(() => processor.createIntent(request)),
      readIntent: (ref) => call(() => processor.readIntent(ref)),
      confirmIntent: (ref) => call(() => processor.confirmIntent(ref)),
      cancelIntent: (ref) => call(() => processor.cancelIntent(ref)),
      abandonIntent: (request) => call(() => processor.abandonIntent(request)),
      createRefund: (request) => call(() => processor.createRefund(request)),
      readRefund: (ref) => call(() => processor.readRefund(ref)),
      listRefunds: (ref) => call(() => processor.listRefunds(ref)),
      listPayments: (request) => call(() => processor.listPayments(request)),
      listMoves: (request) => call(() => processor.listMoves(request)),
      createCustomer: (request) => call(() => processor.createCustomer(request)),
      removeCustomer: (ref) => call(() => processor.removeCustomer(ref)),
      createSetupIntent: (request) => call(() => processor.createSetupIntent(request)),
      attachMethod: (request) => call(() => processor.attachMethod(request)),
      detachMethod: (request) => call(() => processor.detachMethod(request)),
      readEvent: (body) => processor.readEvent(body),
    }
  }
}

class NoAnswer extends Error {}

function withDeadline<T>(work: Promise<T>, arm: (run: () => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    arm(() => reject(new NoAnswer()))
    work.then(resolve, reject)
  })
}
