import '../support/small-limits.ts'
import type BetterSqlite3 from 'better-sqlite3'
import { commerceWork } from '../../cloud/commerce/work.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { hubDomain } from '../../cloud/hub-domain.ts'
import { Gateway } from '../../cloud/gateway/gateway.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../cloud/commerce/processors/processor.ts'
import { sandboxWork, createSandbox } from '../../cloud/commerce/processors/sandbox/sandbox.ts'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { receiveWebhook } from '../../cloud/commerce/payments/webhook.ts'
import { defaultSettings, type CloudSettings } from '../../cloud/platform/settings/settings.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { Chance } from './chance.ts'
import { freshBooks } from './cloud-books.ts'
import type { Coverage } from './coverage.ts'
import type { CrashPoints } from './crash-points.ts'
import type { Network } from './network.ts'
import { Crash, type Life, type Scheduler } from './scheduler.ts'

const MINUTE = 60_000
const SECRET = 'webhook-secret'

/** Shorter than in production, so that a seed meets every deadline. */
export const simulatedSettings: CloudSettings = {
  ...defaultSettings,
  idleOrderMs: 4 * MINUTE,
  purgeExpiredMs: 20 * MINUTE,
  startWithinMs: 4 * MINUTE,
  prepareTimeoutMs: 4 * MINUTE,
  unclaimedTimeoutMs: 6 * MINUTE,
  silentHubMs: 30 * MINUTE,
  paymentRecheckMs: 5000,
  paymentAbandonMs: 2 * MINUTE,
  refundRetryMs: 2 * MINUTE,
  refundRetries: 2,
}

export interface ProcessorWeather {
  /** The processor does not answer: half of the time it has done what was asked. */
  unavailable: number
  /** An event comes a second time, much later, or not at once. */
  repeatEvent: number
  loseEvent: number
}

interface Parts {
  scheduler: Scheduler
  network: Network
  chance: Chance
  coverage: Coverage
  crashPoints: CrashPoints
}

/** The cloud over its lives, and the card processor beside it, which never dies. */
export class CloudNode {
  readonly #parts: Parts
  readonly #books: BetterSqlite3.Database
  readonly #processorDb: CloudDatabase
  readonly #processorLife: Life
  #life: Life | undefined
  #services: CommerceServices | undefined
  weather: ProcessorWeather = { unavailable: 0, repeatEvent: 0, loseEvent: 0 }
  /** It is not started again until this is cleared. */
  heldDown = false

  static async create(parts: Parts): Promise<CloudNode> {
    return new CloudNode(parts, await freshBooks(), await freshBooks())
  }

  private constructor(parts: Parts, books: BetterSqlite3.Database, processorBooks: BetterSqlite3.Database) {
    this.#parts = parts
    this.#books = books
    this.#processorDb = openDatabase({ url: 'sqlite::memory:', sqlite: processorBooks })
    this.#processorLife = parts.scheduler.newLife('processor', () => {})
  }

  get services(): CommerceServices | undefined {
    return this.#life?.alive === true ? this.#services : undefined
  }

  /** Its books, read from outside. */
  reader(): CloudDatabase {
    return openDatabase({ url: 'sqlite::memory:', sqlite: this.#books })
  }

  get processorDb(): CloudDatabase {
    return this.#processorDb
  }

  start(): void {
    const { scheduler, network, chance, coverage, crashPoints } = this.#parts
    if (this.heldDown || this.#life?.alive === true) return
    const life = scheduler.newLife('cloud', () => {
      coverage.hit('cloud lives ended')
      network.cut((one) => one === life, 'process gone')
      scheduler.plan(this.#processorLife, chance.between(200, 8000), () => this.start())
    })
    this.#life = life
    const checkpoint = crashPoints.forLife(life)
    const runtime = { clock: scheduler.clock(life, () => 0), random: chance }
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: guarded(this.#books, life), checkpoint })
    const context: CloudContext = {
      db,
      runtime,
      log: silentLog,
      checkpoint,
      settings: simulatedSettings,
      onFault: (error) => {
        if (!(error instanceof ProcessorUnavailable)) scheduler.report(error, life)
      },
    }
    const processor = this.#unreliable(
      createSandbox({
        db: this.#processorDb,
        runtime: { clock: scheduler.clock(this.#processorLife, () => 0), random: chance },
        checkpoint,
      }),
      life,
    )
    const processId = `cloud-${scheduler.time}`
    const gateway = new Gateway({
      domain: hubDomain,
      context,
      openTransport: network.transportFor('cloud', life),
      processId,
    })
    this.#services = { context, processor, commands: gateway.commands }
    scheduler.plan(life, 0, () => {
      gateway.start()
      new WorkRunner(context, commerceWork(this.#services!)).start()
    })
  }

  /** An operator writes another time zone into the hub's row. */
  moveHub(timezone: string): void {
    this.#books.prepare('UPDATE hubs SET timezone = ?').run(timezone)
  }

  /** The processor's own machinery: it delivers its events to whatever cloud is up. */
  startProcessor(): void {
    const { scheduler, chance } = this.#parts
    const clock = scheduler.clock(this.#processorLife, () => 0)
    const context: CloudContext = {
      db: this.#processorDb,
      runtime: { clock, random: chance },
      log: silentLog,
      checkpoint: noCheckpoint,
      settings: simulatedSettings,
      onFault: (error) => scheduler.report(error, this.#processorLife),
    }
    const deliver = (body: string, signature: string): Promise<boolean> => this.#deliver(body, signature)
    new WorkRunner(context, sandboxWork({ context, secret: SECRET, deliver })).start()
  }

  async #deliver(body: string, signature: string): Promise<boolean> {
    const { scheduler, chance, coverage } = this.#parts
    const life = this.#life
    const { services } = this
    if (!life || !services) return false
    if (chance.happens(this.weather.loseEvent)) {
      coverage.hit('fault webhook lost')
      return false
    }
    const apply = (): Promise<void> => receiveWebhook(services.context, SECRET, body, signature)
    try {
      await withDeadline(apply(), (run) => scheduler.plan(this.#processorLife, 10_000, run))
    } catch (error) {
      if (error instanceof NoAnswer) return false
      scheduler.report(error, life)
      return false
    }
    if (!chance.happens(this.weather.repeatEvent)) return true
    coverage.hit('fault webhook repeated')
    return false
  }

  #unreliable(processor: CardProcessor, life: Life): CardProcessor {
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
      knowsMethod: (method, type) => processor.knowsMethod(method, type),
      createIntent: (request) => call(() => processor.createIntent(request)),
      readIntent: (ref) => call(() => processor.readIntent(ref)),
      confirmIntent: (ref) => call(() => processor.confirmIntent(ref)),
      cancelIntent: (ref) => call(() => processor.cancelIntent(ref)),
      createRefund: (request) => call(() => processor.createRefund(request)),
      readRefund: (ref) => call(() => processor.readRefund(ref)),
      createCustomer: (request) => call(() => processor.createCustomer(request)),
      removeCustomer: (ref) => call(() => processor.removeCustomer(ref)),
      createSetupIntent: (request) => call(() => processor.createSetupIntent(request)),
      attachMethod: (request) => call(() => processor.attachMethod(request)),
      detachMethod: (request) => call(() => processor.detachMethod(request)),
      readEvent: (body) => processor.readEvent(body),
    }
  }

  /** Nothing is under way: no active order, no payment, deposit or refund in doubt, no entry that the hub has not acknowledged. */
  isQuiet(): boolean {
    const waiting = this.#books
      .prepare<[], number>(
        `SELECT (SELECT count(*) FROM orders WHERE processing_status <= 50)
              + (SELECT count(*) FROM payments WHERE status IN ('pending', 'requires_action'))
              + (SELECT count(*) FROM due_work WHERE kind = 'refund')
              + (SELECT count(*) FROM wallet_transactions WHERE status = 'pending')
              + (SELECT count(*) FROM hub_outboxes WHERE base < last)`,
      )
      .pluck()
      .get()
    return waiting === 0
  }

  kill(): void {
    if (this.#life) this.#parts.scheduler.kill(this.#life, 'SIGKILL')
  }
}

class NoAnswer extends Error {}

function withDeadline<T>(work: Promise<T>, arm: (run: () => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    arm(() => reject(new NoAnswer()))
    work.then(resolve, reject)
  })
}

/** The database as one life sees it: with the life's end, it is out of its reach. */
function guarded(database: BetterSqlite3.Database, life: Life): BetterSqlite3.Database {
  const check = (): void => {
    if (!life.alive) throw new Crash(life, 'database')
  }
  const guardStatement = (statement: BetterSqlite3.Statement): BetterSqlite3.Statement =>
    new Proxy(statement, {
      get(target, name) {
        if (name === 'all' || name === 'run' || name === 'get' || name === 'iterate') check()
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  return new Proxy(database, {
    get(target, name) {
      if (name === 'prepare')
        return (text: string) => {
          check()
          return guardStatement(target.prepare(text))
        }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
