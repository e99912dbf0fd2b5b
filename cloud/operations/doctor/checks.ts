import { spawnSync } from 'node:child_process'
import * as files from 'node:fs'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { BUILD, PRODUCT_VERSION } from '../../../protocol/build.ts'
import { counted } from '../../../protocol/model/counted.ts'
import { endOfAuthority } from '../../gateway/hub-certificates.ts'
import {
  certificateFinding,
  clockFinding,
  diskChecks,
  fail,
  isUsable,
  ok,
  unreadable,
  versionFinding,
  warn,
  writable,
  type Check,
  type Checks,
} from '../../../protocol/model/doctor.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { managementKeyOf, type CloudConfig } from '../../platform/settings/config.ts'
import { openDatabase, type CloudDatabase } from '../../platform/store/database.ts'
import { needsMigration } from '../../platform/store/migrate.ts'
import { opensStore } from '../../platform/store/sealer.ts'
import { placeOf } from '../../platform/store/outage.ts'
import { WORKER_TIMEOUT_MS } from '../../platform/work/workers.ts'
import { installationOf, storeSecretsOf, targetOf } from '../backup/place.ts'
import { openTarget } from '../backup/target.ts'
import { listenerChecks, partnerChecks } from './outside.ts'

const HOUR_MS = 3_600_000

/** The checks that need no valid configuration. */
export const buildChecks = (problems: readonly string[]): Checks => ({
  configuration: () =>
    problems.length === 0
      ? ok('every setting is valid')
      : fail(problems.join('; '), 'Correct these settings in cloud.json or in the environment.'),
  version: () => versionFinding(PRODUCT_VERSION, BUILD !== undefined),
  node: () => ok(`Node ${process.versions.node}`),
})

/** The checks of a valid configuration. `configPath`: the file of `--config`. */
export function cloudChecks(
  config: CloudConfig,
  configPath: string | undefined,
  runtime: Runtime,
): { checks: Checks; close: () => Promise<void> } {
  const { database, close } = lazyDatabase(config.databaseUrl)
  const checks = {
    ...fileChecks(config, configPath),
    ...databaseChecks(config, database, runtime),
    ...listenerChecks(config, runtime),
    ...partnerChecks(config, runtime),
    ...backupChecks(config, runtime),
    ...stateChecks(database, runtime),
  }
  return { checks, close }
}

/**
 * The database, opened by the first check that asks; undefined if there is none yet. If it cannot be opened, only that
 * check fails.
 */
function lazyDatabase(url: string) {
  let opening: Promise<CloudDatabase | undefined> | undefined
  async function open(): Promise<CloudDatabase | undefined> {
    if (url.startsWith('sqlite:') && !existsSync(url.slice('sqlite:'.length))) return undefined
    const db = openDatabase({ url }).for('background')
    await db.ping()
    return db
  }
  const failed = (): undefined => undefined
  const database: FindDatabase = () => {
    if (opening) return opening.catch(failed)
    opening = open()
    return opening
  }
  return { database, close: async () => (await opening?.catch(failed))?.close() }
}
type FindDatabase = () => Promise<CloudDatabase | undefined>

const fileChecks = (config: CloudConfig, configPath: string | undefined): Checks => {
  const { DATA_DIR, NODE_ENV, LOG_DIR = join(DATA_DIR, 'logs') } = config
  const secrets = ['store-secret', 'media-secret', 'identity-key.json', 'larder.sqlite']
  const paths = [...secrets.map((name) => join(DATA_DIR, name)), managementKeyOf(config)]
  const own = [configPath, config.MQTT_KEY, config.BACKUP_PASSPHRASE_FILE, config.FCM_SERVICE_ACCOUNT]
  return {
    environment: () =>
      NODE_ENV === 'production'
        ? ok('NODE_ENV is production')
        : warn(
            `NODE_ENV is ${NODE_ENV}`,
            'Set NODE_ENV to production: it refuses settings that are for demos only.',
          ),
    'data folder': () => writable(files, 'DATA_DIR', DATA_DIR),
    'log folder': () => writable(files, 'LOG_DIR', LOG_DIR),
    permissions: () => unreadable(files, [...paths, ...own.filter((path) => path !== undefined)]),
    ...diskChecks(files, 'DATA_DIR', existsSync(DATA_DIR) ? DATA_DIR : '.'),
    'push notices': () => {
      const { FCM_SERVICE_ACCOUNT: path, VAPID_PRIVATE_KEY: vapid, VAPID_SUBJECT, PUBLIC_URL } = config
      if (vapid !== undefined && !/^(mailto|https):/.test(VAPID_SUBJECT ?? PUBLIC_URL ?? ''))
        return fail('Web Push has no contact', 'Set VAPID_SUBJECT to mailto: and your address.')
      if (path !== undefined) JSON.parse(readFileSync(path, 'utf8'))
      if (path !== undefined || vapid !== undefined) return ok('notices to devices are configured')
      return warn(
        'notices to devices are only logged',
        'Set FCM_SERVICE_ACCOUNT or VAPID_PRIVATE_KEY, if customers use an app.',
      )
    },
  }
}

/** Whether a database file exists that this user cannot read and write. */
const isForeignFile = (databaseUrl: string): boolean =>
  databaseUrl.startsWith('sqlite:') &&
  existsSync(placeOf(databaseUrl)) &&
  !isUsable(files, placeOf(databaseUrl))

const databaseChecks = (
  { databaseUrl, ...config }: CloudConfig,
  database: FindDatabase,
  runtime: Runtime,
): Checks => ({
  async database() {
    if (isForeignFile(databaseUrl))
      return fail(
        `${placeOf(databaseUrl)} cannot be opened by this user`,
        `Give it to the user of the service: chown larder: ${placeOf(databaseUrl)}*`,
      )
    const db = await database()
    if (!db)
      return warn(
        `${placeOf(databaseUrl)} does not exist yet`,
        'The first start creates it. If it existed before, restore a backup.',
      )
    return ok(`${placeOf(databaseUrl)} answers`)
  },
  async schema() {
    const db = await database()
    if (!db || (await db.isEmpty())) return undefined
    return (await needsMigration(db.kysely, db.kind))
      ? warn(
          'a migration is waiting: the schema is older than this software',
          'The next start migrates it. Make a backup first.',
        )
      : ok('the schema is that of this software')
  },
  async 'database clock'() {
    const db = await database()
    if (db?.kind !== 'postgres') return undefined
    const { rows } = await sql<{
      now: number
    }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now`.execute(db.kysely)
    return clockFinding('that of the database', runtime.clock.now() - rows[0]!.now)
  },
  async 'database server'() {
    const db = await database()
    if (db?.kind !== 'postgres') return undefined
    const { rows } = await sql<{ encoding: string; isolation: string; connections: string }>`
      select current_setting('server_encoding') as encoding, current_setting('transaction_isolation') as isolation,
        current_setting('max_connections') as connections`.execute(db.kysely)
    const { encoding, isolation, connections } = rows[0]!
    const message = `encoding ${encoding}, isolation ${isolation}, max_connections ${connections}`
    if (encoding !== 'UTF8' || isolation !== 'read committed')
      return fail(message, "Create the database with encoding 'UTF8'; the isolation must be read committed.")
    return Number(connections) < 41
      ? warn(message, 'Set max_connections to 31 for each cloud process, and 10 more.')
      : ok(message)
  },
  async 'store secret'() {
    const db = await database()
    const secrets = storeSecretsOf({ ...config })
    // Another check reports a database that cannot be opened.
    if (!db) return undefined
    const opens = (await db.isEmpty()) ? undefined : await opensStore(db.kysely, secrets)
    if (opens === undefined) return ok('no service has sealed values in the database yet')
    return opens
      ? ok('the secret opens the sealed values of the database')
      : fail(
          'STORE_SECRET does not open the database',
          config.STORE_SECRET !== undefined && existsSync(join(config.DATA_DIR, 'store-secret'))
            ? `If no process had a STORE_SECRET before, remove the setting: ${join(config.DATA_DIR, 'store-secret')} contains the secret that the service has made. Else set the former STORE_SECRET, which is in each backup.`
            : 'Set the STORE_SECRET that all processes had; it is in each backup.',
        )
  },
})

const backupChecks = (config: CloudConfig, runtime: Runtime): Checks => ({
  async backups() {
    const { BACKUP_SCHEDULE, BACKUP_TO, DATA_DIR } = config
    const { passphrase, credentials } = installationOf(config, runtime)
    const [newest] = await openTarget(targetOf(config), credentials).list()
    const ageMs = newest ? runtime.clock.now() - Date.parse(newest.created_at) : Infinity
    const schedule = 'BACKUP_SCHEDULE and BACKUP_TO'
    if (ageMs > 36 * HOUR_MS) {
      const message = newest
        ? `the newest backup is of ${newest.created_at}`
        : `there is no backup in ${targetOf(config)}`
      return BACKUP_SCHEDULE === undefined
        ? warn(message, `Run larder backup create, and set ${schedule}.`)
        : fail(message, 'Run larder backup create and read its error.')
    }
    if (BACKUP_SCHEDULE === undefined) return warn('backups are made only by hand', `Set ${schedule}.`)
    if (passphrase === undefined) return warn('backups are not encrypted', 'Set BACKUP_PASSPHRASE_FILE.')
    const isSameDisk =
      BACKUP_TO === undefined ||
      (!BACKUP_TO.startsWith('s3:') && statSync(BACKUP_TO).dev === statSync(DATA_DIR).dev)
    if (isSameDisk)
      return warn('backups are on the disk of the data', 'Set BACKUP_TO to another disk, or to a bucket.')
    return ok(`the newest backup is of ${newest!.created_at}`)
  },
  'backup programs'() {
    const ofPostgres = ['pg_dump', 'pg_restore', 'psql']
    const programs = ['tar', ...(config.databaseUrl.startsWith('sqlite:') ? [] : ofPostgres)]
    const missing = programs.filter(
      (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status !== 0,
    )
    if (missing.length === 0) return ok(`${programs.join(', ')} can be run`)
    return fail(`${missing.join(', ')} cannot be run`, 'Install the packages tar and postgresql-client.')
  },
})

/** Whether tables or columns of this software may be absent. */
const isMigrationWaiting = ({ kysely, kind }: CloudDatabase): Promise<boolean> =>
  needsMigration(kysely, kind).catch(() => false)

const stateChecks = (database: FindDatabase, { clock }: Runtime): Checks => {
  const judged =
    (query: string, judge: (count: number) => ReturnType<Check>): Check =>
    async () => {
      const db = await database()
      if (!db || (await db.isEmpty())) return undefined
      try {
        const { rows } = await sql.raw<{ count: number | string }>(query).execute(db.kysely)
        return judge(Number(rows[0]!.count))
      } catch (error) {
        if (!(await isMigrationWaiting(db))) throw error
        return warn(
          'not checked, because a migration is waiting',
          'See the check schema. Then run the doctor again.',
        )
      }
    }
  const since = (ms: number): number => clock.now() - ms
  return {
    processes: judged(
      `select count(*) as count from workers where heartbeat_at > ${since(WORKER_TIMEOUT_MS)}`,
      (count) =>
        count > 0
          ? ok(`${counted(count, 'process', 'processes')} of the service`)
          : warn('no process of the service runs', 'Start the service: systemctl start larder-cloud'),
    ),
    'due work': judged(
      `select count(*) as count from due_work where due_at < ${since(10 * 60_000)}`,
      (count) =>
        count === 0
          ? ok('no work is late')
          : warn(
              `${counted(count, 'job')} more than 10 minutes late`,
              'Start the service, then read larder alarms list.',
            ),
    ),
    'dead letters': judged('select count(*) as count from dead_letters', (count) =>
      count === 0
        ? ok('every report of the hubs was applied')
        : warn(`${counted(count, 'report')} of hubs could not be applied`, 'Read larder dead-letters list.'),
    ),
    alarms: judged(
      "select count(*) as count from alarms where cleared_at is null and severity = 'critical'",
      (count) =>
        count === 0
          ? ok('no critical alarm is open')
          : warn(`${counted(count, 'open alarm')} with severity critical`, 'Read larder alarms list.'),
    ),
    async authority() {
      const db = await database()
      const known = db && (await endOfAuthority(db.kysely))
      return known
        ? certificateFinding(
            'of the authority of the hubs',
            known.endsAt,
            clock.now(),
            'Run larder ca rotate (page “Rotate secrets”).',
            known.warnMs,
          )
        : undefined
    },
    hubs: judged('select count(*) as count from hubs where retired_at is null', (count) =>
      count > 0
        ? ok(`${counted(count, 'hub')} registered`)
        : warn(
            'no hub is registered',
            'If hubs were registered before, restore a backup; else run larder hubs create.',
          ),
    ),
    contacts: judged(
      'select count(*) as count from alarm_contacts where confirmed_at is not null',
      (count) =>
        count > 0
          ? ok(`alarms go to ${counted(count, 'contact')}`)
          : warn('no contact receives alarms by mail', 'Run larder contacts add.'),
    ),
  }
}
