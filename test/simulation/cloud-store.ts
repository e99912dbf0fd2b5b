import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import { namesInBooks } from '../invariants/names.ts'
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

/**
 * The one database of all cloud processes. Each process has its own session, which ends with it and has
 * faults.
 */
export class CloudStore {
  readonly #parts: Parts
  readonly #outside: Life
  readonly #sessions = new Map<Life, Session>()
  readonly #server: DatabaseServer
  #weather: DatabaseWeather = healthyDatabase
  /** Rows that were lost when the database was restored: keys at the processor, and orders. */
  readonly lost = new Set<string>()
  /** How often the database was restored. */
  generation = 0
  #onChange: (() => void)[] = []
  /** Connection for observers, which has no faults. */
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
      ready: () => this.#server.ready(),
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

  /** Ends the session of a dead process: its open transactions are rolled back. */
  async close(life: Life): Promise<void> {
    await this.#sessions.get(life)?.endAll()
    this.#sessions.delete(life)
  }

  /** The server closes every connection. */
  async endSessions(): Promise<void> {
    for (const session of this.#sessions.values()) await session.endAll()
  }

  get hasCopy(): boolean {
    return this.#server.hasCopy
  }

  /** Stores a copy of all committed data. */
  async copy(): Promise<void> {
    if (this.#server.copiesAlone) await this.endSessions()
    await this.#server.copy()
  }

  /** Restores the copy; connections to the former database are closed. */
  async putBack(): Promise<void> {
    await this.endSessions()
    const before = await namesInBooks(this.reader.kysely)
    await this.#server.putBack()
    this.generation++
    const after = await namesInBooks(this.reader.kysely)
    for (const name of before) if (!after.has(name)) this.lost.add(name)
  }
}
