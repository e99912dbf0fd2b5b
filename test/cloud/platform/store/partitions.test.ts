import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { Client } from 'pg'
import { expect, onTestFinished } from 'vitest'
import { backupCommands } from '../../../../cloud/cli/backup.ts'
import { runCommandLine } from '../../../../cloud/cli/command-line.ts'
import { recordTemperatures, SPAN_MS } from '../../../../cloud/gateway/temperatures.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { migrate } from '../../../../cloud/platform/store/migrate.ts'
import { singlesOf, tendPartitions } from '../../../../cloud/platform/store/partitions.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { retentionWork } from '../../../../cloud/retention.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../../process/chaos/postgres.ts'
import { service } from '../../../support/services.ts'
import { testContext } from '../../../world/context.ts'
import { testMedia } from '../../support/media.ts'
import { releasedStatements } from './released.ts'

const runtime = systemRuntime()
const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const KEPT_MS = 365 * DAY_MS
const spanOf = (at: number): number => Math.floor(at / SPAN_MS) * SPAN_MS
const NOW = spanOf(runtime.clock.now())
/** A time of a year that has passed, so that the clock of the server is not the earlier one. */
const PAST = NOW - 2 * KEPT_MS
const FAR = spanOf(8.64e15)

async function newDatabase(): Promise<{ url: string; open: () => CloudDatabase }> {
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
  const opened: CloudDatabase[] = []
  onTestFinished(async () => {
    for (const db of opened) await db.close()
    await database.remove()
  })
  const open = (): CloudDatabase => {
    const db = openDatabase({ url: database.url })
    opened.push(db)
    return db
  }
  return { url: database.url, open }
}

async function newTables(): Promise<{ url: string; db: CloudDatabase; open: () => CloudDatabase }> {
  const database = await newDatabase()
  const db = database.open()
  await db.migrate()
  return { ...database, db }
}

/** A database of the first release, with a temperature at each of these times. */
async function formerTables(times: readonly number[]) {
  const database = await newDatabase()
  const db = database.open()
  await migrate(db.kysely, db.kind, { first: releasedStatements(db.kind), numbered: [] })
  for (const at of times)
    await sql`insert into temperatures (hub_id, fridge, at, min, max, sum, samples) values (1, 1, ${at}, 4, 4, 4, 1)`.execute(
      db.kysely,
    )
  return { ...database, db }
}

const record = (db: CloudDatabase, at: number) =>
  db.transact((tx) =>
    recordTemperatures(tx, 1, [
      { kind: 'temperature', fridge_number: 1, at: at + 1, celsius: 4, min: 4, max: 4 },
    ]),
  )
const tend = (db: CloudDatabase, now: number) => tendPartitions(db, 'temperatures', { now, keptMs: KEPT_MS })

const singles = (db: CloudDatabase) => singlesOf(db, 'temperatures')

function runWork(db: CloudDatabase, kind: 'retention' | 'partitions', now: number) {
  const context = testContext(db, { ...runtime, clock: { ...runtime.clock, now: () => now } })
  const work = retentionWork(context, testMedia(context))[kind]!
  return work.run({ kind, subject: 'temperatures', attempts: 1 })
}

/** A transaction of another program, such as `pg_dump`, that has executed this statement. */
async function otherProgram(url: string, statement: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  await client.query(statement)
  return client
}

/** Each row's time with its partition, sorted by time. */
async function stored({ kysely }: CloudDatabase): Promise<[at: number, partition: string][]> {
  const { rows } = await sql<{ at: number; name: string }>`
    select at, tableoid::regclass::text as name from temperatures order by at`.execute(kysely)
  return rows.map(({ at, name }) => [at, name.replace('temperatures_', '').replace(/from_\d+/, 'week')])
}

async function partitions({ kysely }: CloudDatabase): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits
    where inhparent = 'temperatures'::regclass order by name`.execute(kysely)
  return rows.map(({ name }) => name.replace('temperatures_', ''))
}

/** From now on, a deletion of a row fails. */
const refuseDeletes = ({ kysely }: CloudDatabase) =>
  sql
    .raw(
      `create function refuse() returns trigger language plpgsql as $$ begin raise 'a row was deleted'; end $$;
       create trigger refuse before delete on temperatures for each row execute function refuse()`,
    )
    .execute(kysely)

/** The upsert of the first release. */
const formerUpsert = `insert into temperatures (hub_id, fridge, at, min, max, sum, samples) values (1, 1, $1, 4, 4, 4, 1)
  on conflict (hub_id, fridge, at) do update set samples = temperatures.samples + excluded.samples`
const formerDelete = `delete from temperatures where (hub_id, fridge, at) in (
  select hub_id, fridge, at from temperatures where at < $1 limit 500)`

service('postgres')(
  'an upgrade keeps every temperature of the first release, and the prepared statements of the former version continue',
  async () => {
    const times = [0, NOW - WEEK_MS, NOW, NOW + 5 * WEEK_MS, FAR]
    const { url, db } = await formerTables(times)
    const former = new Client({ connectionString: url })
    await former.connect()
    onTestFinished(() => former.end())
    const add = (at: number) => former.query({ name: 'add', text: formerUpsert, values: [at] })
    const remove = (at: number) => former.query({ name: 'remove', text: formerDelete, values: [at] })
    await add(NOW)
    await remove(0)

    await db.migrate()
    expect(await stored(db)).toEqual(times.map((at) => [at, 'before']))
    await add(NOW)
    await record(db, NOW + SPAN_MS)

    await tend(db, NOW)
    expect(await singles(db)).toEqual(['temperatures_rest', 'temperatures_before'])
    await add(NOW)
    await add(NOW + SPAN_MS)
    await record(db, NOW + 3 * WEEK_MS)
    await remove(1)
    expect(await stored(db)).toEqual([
      [NOW - WEEK_MS, 'before'],
      [NOW, 'before'],
      [NOW + SPAN_MS, 'before'],
      [NOW + 3 * WEEK_MS, 'before'],
      [NOW + 5 * WEEK_MS, 'rest'],
      [FAR, 'rest'],
    ])
    const { rows } = await former.query('select samples::int from temperatures order by at limit 3')
    expect(rows).toEqual([{ samples: 1 }, { samples: 4 }, { samples: 2 }])
  },
)

service('postgres')(
  'the separation of former rows continues after an interruption, also with a bound that is too early by now',
  async () => {
    const { db } = await formerTables([NOW - WEEK_MS, NOW])
    await db.migrate()
    for (const statement of [
      'create table temperatures_rest (like temperatures including all)',
      `insert into temperatures_rest values (1, 1, ${NOW + SPAN_MS}, 4, 4, 4, 1)`,
      `alter table temperatures_before add constraint until_${NOW + DAY_MS} check (at < ${NOW + DAY_MS}) not valid`,
    ])
      await sql.raw(statement).execute(db.kysely)
    await tend(db, NOW)
    await record(db, NOW + DAY_MS)
    expect(await stored(db)).toEqual(
      [NOW - WEEK_MS, NOW, NOW + SPAN_MS, NOW + DAY_MS].map((at) => [at, 'before']),
    )
    expect(await partitions(db)).toEqual(['before', 'rest'])
    // Two weeks later, the coming weeks begin after the former rows.
    const monday = Math.floor((NOW - 4 * DAY_MS) / WEEK_MS) * WEEK_MS + 4 * DAY_MS
    for (const statement of [
      'alter table temperatures detach partition temperatures_before',
      `alter table temperatures attach partition temperatures_before for values from (minvalue) to (${monday + 2 * WEEK_MS})`,
    ])
      await sql.raw(statement).execute(db.kysely)
    await tend(db, NOW)
    expect(await partitions(db)).toHaveLength(2 + 3)
  },
)

service('postgres')(
  'a service that is stopped during the separation stores the readings of the next four weeks',
  async () => {
    const { db } = await formerTables([NOW])
    await db.migrate()
    const killed = { ...db, unlimited: () => Promise.reject(new Error('killed')) }
    await expect(tend(killed, NOW)).rejects.toThrow('killed')
    await record(db, NOW + 4 * WEEK_MS - SPAN_MS)
    await tend(db, NOW + 4 * WEEK_MS)
    expect(await partitions(db)).toEqual(['before', 'rest'])
  },
)

service('postgres')(
  'the separation of former rows may take longer than every limit, and no retention waits for it',
  async () => {
    const { url, db } = await formerTables([0, NOW])
    await db.migrate()
    const until = NOW + 5 * WEEK_MS
    for (const statement of [
      'create table temperatures_rest (like temperatures including all)',
      `alter table temperatures_before add constraint until_${until} check (at < ${until}) not valid`,
    ])
      await sql.raw(statement).execute(db.kysely)
    const background = { ...defaultLimits.database.background, statementMs: 1500 }
    const limited = openDatabase({ url, pools: { ...defaultLimits.database, background } })
    onTestFinished(() => limited.close())
    const context = testContext(limited.for('background'), runtime)
    const runner = new WorkRunner(context, retentionWork(context, testMedia(context)))
    await runner.ensureRecurring()

    const other = await otherProgram(url, 'lock table temperatures_before in share update exclusive mode')
    const separation = runner.drain(['partitions'])
    await runner.drain(['retention'])
    expect(await stored(db)).toEqual([[NOW, 'before']])
    await other.query('select pg_sleep(3)')
    expect(await partitions(db)).toEqual(['before'])
    await other.query('commit')
    await separation
    expect(await partitions(db)).toEqual(['before', 'rest'])
  },
)

service('postgres')('retention drops an expired week, and deletes no row of a week', async () => {
  const { db } = await newTables()
  await refuseDeletes(db)
  await tend(db, PAST)
  const [first] = await partitions(db)
  await record(db, PAST)
  await record(db, PAST + WEEK_MS)
  // The last row of the week may still be young.
  await runWork(db, 'partitions', PAST + KEPT_MS - SPAN_MS)
  expect(await partitions(db)).toContain(first)
  for (const kind of ['partitions', 'retention'] as const) await runWork(db, kind, PAST + KEPT_MS + WEEK_MS)
  expect(await stored(db)).toEqual([[PAST + WEEK_MS, 'week']])
  expect(await partitions(db)).not.toContain(first)
})

service('postgres')('each run drops one week at most, the oldest', async () => {
  const { db } = await newTables()
  await tend(db, PAST)
  for (const week of [0, 1, 2]) await record(db, PAST + week * WEEK_MS)
  for (const left of [2, 1, 0, 0]) {
    await tend(db, PAST + KEPT_MS + 3 * WEEK_MS)
    expect((await stored(db)).map(([at]) => at)).toEqual(
      [2, 1]
        .slice(0, left)
        .map((week) => PAST + week * WEEK_MS)
        .toSorted((a, b) => a - b),
    )
  }
})

service('postgres')('expired rows are deleted while a long backup prevents the drop of a week', async () => {
  const { url, db } = await newTables()
  await tend(db, PAST)
  for (const at of [0, PAST]) await record(db, at)
  const dump = await otherProgram(url, 'select from temperatures')
  const now = PAST + KEPT_MS + WEEK_MS
  await expect(runWork(db, 'partitions', now)).rejects.toThrow('lock timeout')
  await runWork(db, 'retention', now)
  expect(await stored(db)).toEqual([[PAST, 'week']])
  await dump.query('commit')
  await runWork(db, 'partitions', now)
  expect(await stored(db)).toEqual([])
})

service('postgres')('a clock that is years ahead drops no partition', async () => {
  const { db } = await newTables()
  await tend(db, NOW)
  await record(db, NOW)
  const before = await partitions(db)
  await tend(db, NOW + 10 * KEPT_MS)
  expect(await partitions(db)).toEqual(before)
  expect(await stored(db)).toEqual([[NOW, 'week']])
})

service('postgres')(
  'a temperature without a partition is stored, moves to its week when that begins, and is deleted by age',
  async () => {
    const { db } = await newTables()
    for (const at of [0, PAST, FAR]) await record(db, at)
    expect(await stored(db)).toEqual([0, PAST, FAR].map((at) => [at, 'rest']))
    await tend(db, PAST)
    expect(await singles(db)).toEqual(['temperatures_rest'])
    expect(await stored(db)).toEqual([
      [0, 'rest'],
      [PAST, 'week'],
      [FAR, 'rest'],
    ])
    await runWork(db, 'retention', PAST)
    expect(await stored(db)).toEqual([
      [PAST, 'week'],
      [FAR, 'rest'],
    ])
  },
)

service('postgres')(
  'two clouds that change partitions at once, while hubs report, lose no temperature',
  async () => {
    const { db, open } = await formerTables([0])
    await db.migrate()
    const clouds = [open(), open()]
    const progress = { isOver: false, recorded: 0 }
    const reports = Promise.all(
      clouds.map(async (cloud, index) => {
        for (; !progress.isOver || progress.recorded < 20; progress.recorded += 1)
          await record(cloud, NOW - (2 * progress.recorded + index) * SPAN_MS)
      }),
    )
    for (let round = 0; round < 3; round += 1) await Promise.all(clouds.map((cloud) => tend(cloud, NOW)))
    progress.isOver = true
    await reports
    expect(await stored(db)).toHaveLength(progress.recorded + 1)
    expect(await partitions(db)).toEqual(['before', 'rest'])
  },
)

service('postgres')('a new partition changes no digest of the schema', async () => {
  const { db } = await newTables()
  const digests = async () => (await sql`select declared, tables from larder_schema`.execute(db.kysely)).rows
  const before = await digests()
  for (const now of [NOW - 20 * WEEK_MS, NOW]) await tend(db, now)
  expect((await partitions(db)).length).toBeGreaterThan(10)
  await db.migrate()
  expect(await digests()).toEqual(before)
})

service('pgDump')(
  'a backup with partitions passes its checks and replaces a database with other partitions',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-partitions-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const { url, db } = await newTables()
    await tend(db, NOW - 20 * WEEK_MS)
    for (const at of [0, NOW - 20 * WEEK_MS, NOW - 19 * WEEK_MS]) await record(db, at)
    const [rows, names] = [await stored(db), await partitions(db)]
    const larder = async (...words: string[]) => {
      const { exitCode, stdout, stderr } = await runCommandLine(backupCommands, runtime, words, {
        DATA_DIR: folder,
        DATABASE_URL: url,
      })
      expect([exitCode, stderr]).toEqual([0, expect.any(String)])
      return JSON.parse(stdout) as { file: string }
    }
    const { file } = await larder('create')
    await larder('verify', file)
    await tend(db, NOW)
    await record(db, NOW)
    await sql.raw(`drop table temperatures_${names[0]}`).execute(db.kysely)
    await db.close()
    await larder('restore', file, '--force')
    const restored = openDatabase({ url })
    onTestFinished(() => restored.close())
    await restored.migrate()
    expect(await stored(restored)).toEqual(rows)
    expect(await partitions(restored)).toEqual(names)
  },
  180_000,
)
