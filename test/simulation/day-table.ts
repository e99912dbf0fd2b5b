import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import type { World } from './world.ts'

/** Bytes that this process has written with system calls; the cloud's database is in memory, so the hubs wrote them. */
function bytesWritten(): number {
  try {
    return Number(/wchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1] ?? Number.NaN)
  } catch {
    return Number.NaN
  }
}

const MIB = 1024 * 1024
const columns = [
  ['day', 3],
  ['orders', 6],
  ['units', 5],
  ['failed', 6],
  ['refunds', 7],
  ['alarms', 6],
  ['visits', 6],
  ['renewals', 8],
  ['updates', 7],
  ['returns', 7],
  ['power cuts', 10],
  ['hub starts', 10],
  ['MB/hub', 6],
  ['journal KB', 10],
  ['RSS MB', 6],
] as const satisfies [string, number][]

type Figures = Record<(typeof columns)[number][0], number>

const lineOf = (cells: readonly (string | number)[]): string =>
  cells.map((cell, index) => String(cell).padStart(columns[index]![1])).join(' ')

/** The table of the days: counts of each day, from the cloud's books and the coverage. */
export class DayTable {
  readonly head = lineOf(columns.map(([name]) => name))
  readonly #world: World
  #before: Figures | undefined
  #written = bytesWritten()

  constructor(world: World) {
    this.#world = world
  }

  async row(day: number, journals: readonly number[]): Promise<string> {
    const now = await this.#totals(day, journals)
    const before = this.#before
    this.#before = now
    const written = bytesWritten()
    const mbPerHub = (written - this.#written) / MIB / this.#world.sites.length
    this.#written = written
    const cells = columns.map(([name]) => {
      if (name === 'MB/hub') return Number.isNaN(mbPerHub) ? '-' : mbPerHub.toFixed(1)
      const isCount = name !== 'day' && name !== 'journal KB' && name !== 'RSS MB'
      return isCount ? now[name] - (before?.[name] ?? 0) : now[name]
    })
    return lineOf(cells)
  }

  async #totals(day: number, journals: readonly number[]): Promise<Figures> {
    const { store, coverage } = this.#world
    const { rows } = await sql<Record<'orders' | 'units' | 'failed' | 'refunds' | 'alarms', number>>`
      select (select count(*) from orders where processing_status = ${S.COMPLETED}) as orders,
             (select coalesce(sum(-delta), 0) from stock_ledger where kind = 'dropped') as units,
             (select count(*) from orders where processing_status > ${S.COMPLETED} and queued_at is not null) as failed,
             (select count(*) from refunds where status = 'succeeded') as refunds,
             (select count(*) from alarms) as alarms`.execute(store.reader.kysely)
    const count = (name: string): number => coverage.counts.get(name) ?? 0
    return {
      day,
      ...rows[0]!,
      visits: count('technician visits'),
      renewals: count('board certificate renewed'),
      updates: count('board updated'),
      returns: count('board returned to its release'),
      'power cuts': count('fault power cut') + count('updater lives ended'),
      'hub starts': count('hub lives ended'),
      'MB/hub': 0,
      'journal KB': Math.round(journals.reduce((sum, bytes) => sum + bytes, 0) / journals.length / 1024),
      'RSS MB': Math.round(process.memoryUsage().rss / MIB),
    }
  }

  /** Counts by kind, over all days. */
  async summary(): Promise<string[]> {
    const { store, coverage, sites } = this.#world
    const q = store.reader.kysely
    const by = async (
      title: string,
      table: 'alarms' | 'refunds' | 'orders',
      column: string,
    ): Promise<string> => {
      const { rows } = await sql<{ name: string | number; n: number }>`
        select ${sql.ref(column)} as name, count(*) as n from ${sql.table(table)} group by 1 order by 2 desc`.execute(
        q,
      )
      return `${title}: ${rows.map(({ name, n }) => `${name} ${n}`).join(', ')}`
    }
    const rollouts = await q.selectFrom('rollouts').select(['id', 'version', 'state']).execute()
    const ends = await Promise.all(
      rollouts.map(async ({ id, version, state }) => {
        const hubs = await q
          .selectFrom('rollout_hubs')
          .select(['state'])
          .where('rollout_id', '=', id)
          .execute()
        const states = [...new Set(hubs.map(({ state }) => state))]
        const numberOf = (state: string): number => hubs.filter((hub) => hub.state === state).length
        const shown = states.map((state) => `${state} ${numberOf(state)}`).join(', ')
        return `rollout of ${version} (${this.#world.fleet!.releases.get(version)}): ${state}; hubs: ${shown}`
      }),
    )
    const longest = Math.max(...sites.map(({ hub }) => hub.board!.longestStopMs))
    return [
      await by('orders by status', 'orders', 'processing_status'),
      await by('refunds by reason', 'refunds', 'reason'),
      await by('alarms by kind', 'alarms', 'kind'),
      ...ends,
      `longest stop of a hub for an update: ${(longest / 1000).toFixed(0)} s`,
      ...['fault ', 'board ', 'rollout ', 'updater ', 'technician ', 'customer ', 'crash '].map(
        (prefix) => `${prefix.trim()}\n${coverage.lines(prefix).join('\n')}`,
      ),
    ]
  }
}
