import type { Location } from '../../protocol/model/location.ts'
import type { State } from '../../protocol/mqtt/hub-entries.ts'
import { all, writer } from './statements.ts'
import type { Store } from './store.ts'

/** A row whose dispenses have failed in a row, each without moving anything. */
export interface RowFault extends Location {
  failures: number
  /** Why the last one did (serial SPEC §7). */
  why: string
  failed_at: number
}

/** Rows that give nothing, though nothing is unknown of them. */
export function createRowFaults(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], RowFault>('SELECT * FROM row_faults ORDER BY cabinet, shelf, row'))
  const known = store.keep((): readonly RowFault[] => rows())
  const write = writer(known)
  const at = 'cabinet = @cabinet AND shelf = @shelf AND row = @row'
  const remove = write(db.prepare<[Location]>(`DELETE FROM row_faults WHERE ${at}`))
  const add = write(
    db.prepare<[Location & { why: string; failedAt: number }]>(
      `INSERT INTO row_faults (cabinet, shelf, row, failures, why, failed_at)
     VALUES (@cabinet, @shelf, @row, 1, @why, @failedAt)
     ON CONFLICT DO UPDATE SET failures = failures + 1, why = excluded.why, failed_at = excluded.failed_at`,
    ),
  )
  const place = ({ cabinet, shelf, row }: Location): Location => ({ cabinet, shelf, row })
  return {
    all: known.get,
    add: (location: Location, why: string, failedAt: number) => add({ ...place(location), why, failedAt }),
    remove(location: Location): void {
      if (known.get().length > 0) remove(place(location))
    },
  }
}

/** Instants are the cloud's time. */
export interface FridgeRow {
  number: number
  /** While it is too warm: when it was last read as cold. */
  warm_since: number | null
  read_at: number
  shutoff_at: number | null
}

/** What the hub remembers of its fridges' warmth. */
export function createFridges(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], FridgeRow>('SELECT * FROM fridges ORDER BY number'))
  const known = store.keep((): readonly FridgeRow[] => rows())
  const write = writer(known)
  return {
    all: known.get,
    find: (number: number): FridgeRow | undefined => known.get().find((row) => row.number === number),
    put: write(
      db.prepare<[FridgeRow]>(
        `INSERT INTO fridges (number, warm_since, read_at, shutoff_at)
       VALUES (@number, @warm_since, @read_at, @shutoff_at)
       ON CONFLICT DO UPDATE SET warm_since = excluded.warm_since, read_at = excluded.read_at,
         shutoff_at = excluded.shutoff_at`,
      ),
    ),
  }
}

type WithoutSince<S> = S extends State ? Omit<S, 'since'> : never
/** How something stands, whenever it began. */
export type Standing = WithoutSince<State>

interface ToldRow {
  subject: string
  state: string
  since: number
}

/** What was told to the cloud of rows, bins, cabinets and fridges, by subject. */
export function createToldStates(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], ToldRow>('SELECT * FROM told_states ORDER BY subject'))
  const known = store.keep(
    (): ReadonlyMap<string, string> => new Map(rows().map(({ subject, state }) => [subject, state])),
  )
  const write = writer(known)
  const put = write(
    db.prepare<[ToldRow]>(
      `INSERT INTO told_states (subject, state, since) VALUES (@subject, @state, @since)
     ON CONFLICT DO UPDATE SET state = excluded.state, since = excluded.since`,
    ),
  )
  return {
    /** As JSON, by subject. */
    all: known.get,
    states: (): State[] => rows().map(({ state, since }) => ({ ...(JSON.parse(state) as Standing), since })),
    put: (subject: string, state: Standing, since: number) =>
      put({ subject, state: JSON.stringify(state), since }),
    remove: write(db.prepare<[subject: string]>('DELETE FROM told_states WHERE subject = ?')),
  }
}

/** An alarm that is raised. */
export interface RaisedAlarm {
  code: string
  subject: string
  detail: string
  raised_at: number
}

/** Which alarms are raised, so that each is reported once, also across restarts. */
export function createAlarms(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], RaisedAlarm>('SELECT * FROM alarms ORDER BY code, subject'))
  const known = store.keep((): readonly RaisedAlarm[] => rows())
  const write = writer(known)
  const raise = write(
    db.prepare<[RaisedAlarm]>(
      'INSERT INTO alarms (code, subject, detail, raised_at) VALUES (@code, @subject, @detail, @raised_at)',
    ),
  )
  const lower = write(
    db.prepare<[code: string, subject: string]>('DELETE FROM alarms WHERE code = ? AND subject = ?'),
  )
  const isRaised = (code: string, subject: string): boolean =>
    known.get().some((alarm) => alarm.code === code && alarm.subject === subject)
  return {
    /** False where it was raised already. */
    raise: (alarm: RaisedAlarm): boolean => !isRaised(alarm.code, alarm.subject) && raise(alarm) > 0,
    /** False where it was not raised. */
    lower: (code: string, subject: string): boolean => isRaised(code, subject) && lower(code, subject) > 0,
    isRaised,
    all: known.get,
  }
}
