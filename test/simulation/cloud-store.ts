import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { identityOf } from '../../cloud/commerce/processors/processor.ts'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { driven, healthyDatabase, Session, type DatabaseWeather } from './database-weather.ts'
import type { DatabaseServer } from './database-server.ts'
import type { Life, Scheduler } from './scheduler.ts'

interface Parts {
  scheduler: Scheduler
  chance: Chance
  coverage: Coverage
}

/** The one database of all cloud processes: each has a session of its own, which ends with it and suffers the weather. */
export class CloudStore {
  readonly #parts: Parts
  readonly #outside: Life
  readonly #sessions = new Map<Life, Session>()
  readonly #server: DatabaseServer
  #weather: DatabaseWeather = healthyDatabase
  /** What was in the books, and is not since they were put back: keys at the processor, and orders. */
  readonly lost = new Set<string>()
  #onChange: (() => void)[] = []
  /** For those who look from outside: they are never disturbed. */
  readonly reader: CloudDatabase

  constructor(parts: Parts, server: DatabaseServer) {
    this.#parts = parts
    this.#server = server
    this.#outside = parts.scheduler.newLife('outside', () => {})
    this.reader = this.#openFor(this.#outside, undefined, () => healthyDatabase)
  }

  get weather(): DatabaseWeather {
    return this.#weather
  }

  set weather(weather: DatabaseWeather) {
    this.#weather = weather
    for (const resolve of this.#onChange.splice(0)) resolve()
  }

  openFor(life: Life, checkpoint: Checkpoint): CloudDatabase {
    return this.#openFor(life, checkpoint, () => this.#weather)
  }

  #openFor(life: Life, checkpoint: Checkpoint | undefined, weather: () => DatabaseWeather): CloudDatabase {
    const { scheduler, chance, coverage } = this.#parts
    const session = new Session({
      shared: () => this.#server.driver,
      life,
      chance,
      coverage,
      weather,
      after: (delayMs, run) => scheduler.plan(life, delayMs, run),
      track: (work) => scheduler.track(work),
      change: () => new Promise((resolve) => void this.#onChange.push(resolve)),
    })
    if (life !== this.#outside) this.#sessions.set(life, session)
    return openDatabase({
      ...this.#server.options,
      ...(checkpoint && { checkpoint }),
      through: (dialect) => driven(dialect, session),
    })
  }

  /** A process has died: what it had begun is undone. */
  async close(life: Life): Promise<void> {
    await this.#sessions.get(life)?.endAll()
    this.#sessions.delete(life)
  }

  /** The server ends every connection. */
  async endSessions(): Promise<void> {
    for (const session of this.#sessions.values()) await session.endAll()
  }

  get hasCopy(): boolean {
    return this.#server.hasCopy
  }

  /** Keeps a copy of what is committed. */
  copy(): Promise<void> {
    return this.#server.copy()
  }

  /** The database is what its copy was; connections to what it has been are ended. */
  async putBack(): Promise<void> {
    await this.endSessions()
    const before = await this.#names()
    await this.#server.putBack()
    const after = await this.#names()
    for (const name of before) if (!after.has(name)) this.lost.add(name)
  }

  /** What the outside world may have heard of: what is asked of the processor, and orders. */
  async #names(): Promise<Set<string>> {
    const { kysely } = this.reader
    const rows = ['id', 'created_at'] as const
    const payments = await kysely.selectFrom('payments').select(rows).execute()
    const refunds = await kysely.selectFrom('refunds').select(rows).execute()
    const transactions = await kysely.selectFrom('wallet_transactions').select(rows).execute()
    const orders = await kysely.selectFrom('orders').select('uuid').execute()
    return new Set([
      ...payments.map((row) => `pay:${identityOf(row)}`),
      ...refunds.map((row) => `refund:${identityOf(row)}`),
      ...transactions.map((row) => `deposit:${identityOf(row)}`),
      ...orders.map(({ uuid }) => `order ${uuid}`),
    ])
  }
}
