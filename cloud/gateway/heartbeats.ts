import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Heartbeat } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import { background, isolated } from '../platform/work/background.ts'
import type { HubDomain } from './domain.ts'
import type { Beat, LeaseKeeper, Renewal } from './leases.ts'
import { isForNobody } from './receiver.ts'
import { sql } from 'kysely'
import type { Vitals } from '../../protocol/model/vitals.ts'
import { timestamp } from '../platform/calendar/days.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'

export interface HeartbeatsPorts {
  context: CloudContext
  domain: HubDomain
  leases: LeaseKeeper
  /** Minimum time between two writes, in milliseconds. */
  gatherMs: number
}

/** A heartbeat that is not written yet. */
interface Heard {
  heartbeat: Heartbeat
  /** Receives the state of the hub's lease. */
  onRenewed: (renewal: Renewal) => void
}

const isHeld = (renewal: Renewal | 'due' | undefined): renewal is Extract<Renewal, { kind: 'held' }> =>
  typeof renewal === 'object' && renewal.kind === 'held'

/**
 * Records heartbeats: one comparison, and one transaction for those with news, for all hubs that sent one within
 * `gatherMs`. A heartbeat after a pause is recorded at once.
 */
export class Heartbeats {
  readonly #ports: HeartbeatsPorts
  #heard = new Map<number, Heard>()
  #writing: Promise<void> = Promise.resolve()
  #cancel: Cancel | undefined
  #hasEnded = false

  constructor(ports: HeartbeatsPorts) {
    this.#ports = ports
  }

  /** Only the latest heartbeat of a hub counts. */
  add(hubId: number, heartbeat: Heartbeat, onRenewed: (renewal: Renewal) => void): void {
    if (this.#hasEnded) return
    const former = this.#heard.get(hubId)?.heartbeat
    // Not every heartbeat has figures, and the latest heartbeat would drop those of a former one.
    const vitals = heartbeat.vitals ?? (former?.session === heartbeat.session ? former.vitals : undefined)
    this.#heard.set(hubId, { heartbeat: { ...heartbeat, vitals }, onRenewed })
    if (!this.#cancel) this.#write()
  }

  /** The session has ended: its last heartbeat must not make the hub connected again. */
  async forget(hubId: number, session: string): Promise<void> {
    if (this.#heard.get(hubId)?.heartbeat.session === session) this.#heard.delete(hubId)
    await this.#writing
  }

  /** Accepts no more heartbeats; resolves when the pending ones are written. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.#cancel?.()
    this.#heard.clear()
    await this.#writing
  }

  #write(): void {
    const { context, gatherMs } = this.#ports
    const heard = [...this.#heard]
    this.#heard = new Map()
    // One after another: a slow database gets larger batches, not more of them.
    this.#writing = this.#writing.then(() => isolated(context, 'heartbeats', () => this.#renew(heard)))
    this.#cancel = context.runtime.clock.after(gatherMs, () =>
      background(context, 'heartbeats', async () => {
        await this.#writing
        this.#cancel = undefined
        if (this.#heard.size > 0 && !this.#hasEnded) this.#write()
      }),
    )
  }

  async #renew(heard: readonly (readonly [number, Heard])[]): Promise<void> {
    const { context, domain, leases } = this.#ports
    try {
      const beats = heard.map(([hubId, { heartbeat }]) => ({ hubId, heartbeat }))
      const compared = await leases.compare(context.db.kysely, beats)
      const due = beats.filter(({ hubId }) => compared.get(hubId) === 'due')
      const withVitals = beats.filter(({ heartbeat }) => heartbeat.vitals)
      const written =
        due.length + withVitals.length === 0
          ? new Map<number, Renewal>()
          : await context.db.transact(async (tx) => {
              const renewed = due.length > 0 ? await leases.renew(tx, due) : new Map<number, Renewal>()
              const held = withVitals.filter(({ hubId }) => isHeld(renewed.get(hubId) ?? compared.get(hubId)))
              await recordVitals(tx, held, context.runtime.clock.now())
              const news = due.flatMap(({ hubId, heartbeat: { health } }) => {
                const renewal = renewed.get(hubId)
                return isHeld(renewal) ? [{ hubId, health: renewal.isLatest ? health : null }] : []
              })
              if (news.length > 0) await domain.hubsHeard(tx, context, news)
              return renewed
            })
      for (const [hubId, { onRenewed }] of heard)
        onRenewed(written.get(hubId) ?? (compared.get(hubId) as Renewal))
    } catch (error) {
      if (heard.length === 1 || isForNobody(error)) throw error
      // A heartbeat that cannot be written must not delay those of other hubs.
      for (const one of heard) await isolated(context, `hub ${one[0]}: heartbeat`, () => this.#renew([one]))
    }
  }
}

const columns = {
  memory_bytes: 'int',
  disk_free_bytes: 'int',
  board_celsius: 'real',
  journal_bytes: 'int',
  link_errors: 'int',
  queue: 'int',
  restarts: 'int',
  clock_offset_ms: 'int',
} as const satisfies Record<keyof Vitals, string>

export const vitalNames = Object.keys(columns) as (keyof Vitals)[]

/** Records the figures of heartbeats that have any: in one statement, and none if no figure has changed noticeably. */
async function recordVitals(tx: Tx, beats: readonly Beat[], now: number): Promise<void> {
  const rows = beats.flatMap(({ hubId, heartbeat: { vitals } }) => {
    if (!vitals) return []
    const { last_crash: crash, ...figures } = vitals
    return [
      {
        ...figures,
        hub_id: hubId,
        crashed_at: crash && Math.round(crash.at),
        crash_error: crash?.error ?? null,
      },
    ]
  })
  if (rows.length === 0) return
  const all = { hub_id: 'int', ...columns, crashed_at: 'int', crash_error: 'text' } as const
  const names = Object.keys(all).map((name) => sql.ref(name))
  const changes = Object.keys(all).map((name) => sql`${sql.ref(name)} = excluded.${sql.ref(name)}`)
  const source = recordset(
    tx.kind,
    all,
    rows.toSorted((a, b) => a.hub_id - b.hub_id),
  )
  await sql`
    insert into hub_vitals (at, ${sql.join(names)})
    select cast(${now} as bigint), ${sql.join(names)} from ${source} where true order by hub_id
    on conflict (hub_id) do update set at = excluded.at, ${sql.join(changes)}
  `.execute(tx.q)
}

/** The latest figures of hubs as the API shows them, by hub. */
export async function readVitals(q: Queries, hubIds: readonly number[]) {
  const rows = await q.selectFrom('hub_vitals').selectAll().where('hub_id', 'in', hubIds).execute()
  return new Map(
    rows.map(({ hub_id, at, crashed_at, crash_error: error, ...figures }) => [
      hub_id,
      {
        reported_at: timestamp(at),
        ...figures,
        last_crash: crashed_at === null ? null : { at: timestamp(crashed_at), error },
      },
    ]),
  )
}
