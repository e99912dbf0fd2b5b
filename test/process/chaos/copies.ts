import { Client } from 'pg'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { sandboxTables } from '../../../cloud/platform/store/tables/processors.ts'
import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import { namesInBooks } from '../../invariants/names.ts'
import type { Proxy } from '../../../simulator/demo/proxy.ts'

export interface Copy {
  database: string
  /** Time of the monotonic clock. */
  madeAt: number
}

/** Copies of the cloud's database on its PostgreSQL server, and the losses of a restore. */
export interface Copies {
  /** Rows that were lost when an older copy was restored (`Evidence.lost`). */
  readonly lost: ReadonlySet<string>
  /** Ends every connection of the clouds, as the server would. */
  endConnections(): Promise<void>
  /** Stores a copy of all committed data. During that time the database is unreachable. */
  copy(): Promise<Copy>
  /**
   * Restores a copy. During that time the database is unreachable. Only the card processor's books, which belong to
   * another company, keep their present state.
   */
  putBack(copy: Copy): Promise<void>
  drop(copy: Copy): Promise<void>
  /** Drops every copy. */
  close(): Promise<void>
}

export function createCopies({
  databaseUrl,
  line,
  clock,
}: {
  databaseUrl: string
  /** The clouds' own line to the database. */
  line: Proxy
  clock: Clock
}): Copies {
  const name = new URL(databaseUrl).pathname.slice(1)
  const kept = new Set<Copy>()
  const lost = new Set<string>()
  let number = 0

  const urlOf = (database: string): string => {
    const url = new URL(databaseUrl)
    url.pathname = `/${database}`
    return url.href
  }
  async function at<T>(database: string, work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: urlOf(database) })
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }
  const administrate = (statement: string, values?: unknown[]): Promise<unknown> =>
    at('postgres', (client) => client.query(statement, values))

  async function endConnections(): Promise<void> {
    await administrate('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  }

  /** Runs work that needs the database without connections. */
  async function alone<T>(work: () => Promise<T>): Promise<T> {
    line.bar()
    try {
      await endConnections()
      return await work()
    } finally {
      line.clearFaults()
    }
  }

  /** `create database … template …` fails for a moment after the template's last connection ended. */
  async function createFrom(database: string, template: string): Promise<void> {
    for (let attempt = 0; ; attempt++)
      try {
        return void (await administrate(`create database ${database} template ${template}`))
      } catch (error) {
        if (attempt === 50 || (error as { code?: string }).code !== '55006') throw error
        await sleep(clock, 100)
      }
  }

  async function drop(copy: Copy): Promise<void> {
    if (kept.delete(copy)) await administrate(`drop database ${copy.database} with (force)`)
  }

  return {
    lost,
    endConnections,
    copy: () =>
      alone(async () => {
        const copy = { database: `${name}_copy_${++number}`, madeAt: clock.monotonic() }
        await createFrom(copy.database, name)
        kept.add(copy)
        return copy
      }),
    putBack: (copy) =>
      alone(async () => {
        const old = `${name}_old`
        await administrate(`alter database ${name} rename to ${old}`)
        await createFrom(name, copy.database)
        await at(old, (from) => at(name, (to) => carryProcessorBooks(from, to)))
        const remaining = await namesAt(urlOf(name))
        for (const one of await namesAt(urlOf(old))) if (!remaining.has(one)) lost.add(one)
        await administrate(`drop database ${old} with (force)`)
      }),
    drop,
    async close() {
      for (const copy of kept) await drop(copy)
    },
  }
}

async function namesAt(url: string): Promise<Set<string>> {
  const db = openDatabase({ url })
  try {
    return await namesInBooks(db.kysely)
  } finally {
    await db.close()
  }
}

/** The sandbox's own tables and its planned work. A table comes after the tables that it references. */
const processorBooks: readonly { table: string; where: string }[] = [
  ...Object.keys(sandboxTables).map((table) => ({ table, where: 'true' })),
  { table: 'due_work', where: "kind like 'sandbox.%'" },
]

/** Copies all columns of all rows, independent of the schema. */
async function carryProcessorBooks(from: Client, to: Client): Promise<void> {
  await to.query('begin')
  for (const { table, where } of processorBooks.toReversed())
    await to.query(`delete from ${table} where ${where}`)
  for (const { table, where } of processorBooks) {
    const { rows } = await from.query<{ all: string }>(
      `select coalesce(json_agg(t), '[]')::text as all from ${table} t where ${where}`,
    )
    await to.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1::json)`, [
      rows[0]!.all,
    ])
  }
  await to.query('commit')
}
