import type { Context, Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import { streamState } from '../../protocol/model/json-changes.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { Station } from '../fleet.ts'
import type { Desk } from '../scenarios/desk.ts'
import { numberOf, stationOf, type Stations } from './request-parts.ts'

export interface LiveOptions {
  stations: Stations
  desk: Desk
  clock: Clock
  /** Interval at which a page gets changes, in milliseconds. */
  liveMs: number
}

/** Maximum of wire entries in one message, so that a new page does not get all at once. */
const WIRE_BATCH = 500
/** Number of scenario runs that a page shows. */
const SHOWN_RUNS = 10

/** The state of a hub in one line, for a page with many hubs. */
export function summaryOf({ hub }: Station) {
  const { controllers, faults, bins, doors, last_actuation } = hub.state()
  return {
    hub_id: hub.hardware.hubId,
    powered: controllers.filter(({ powered }) => powered).length,
    connected: controllers.filter(({ connected }) => connected).length,
    controllers: controllers.length,
    faults: faults.length,
    moving: bins.filter(({ door, lift }) => door === 'moving' || lift === 'moving').length,
    open: doors.filter(({ open }) => open).map(({ door }) => door),
    last_actuation,
  }
}

/**
 * Server-sent events. Each stream begins with `state`, the whole state; then it sends `changes` (`json-changes.ts`).
 * `started_at` of a hub's state shows a restart, after which acts and wire are numbered from 1 again.
 * The stream of a hub also has `acts` and `wire`, the entries after the query's `acts` and `wire`. It has `gone` when
 * the hub was removed or reset.
 */
export function liveRoutes(app: Hono, { stations, desk, clock, liveMs }: LiveOptions): void {
  /** `read` returns undefined if the hub was removed or reset. */
  const follow = (c: Context, read: () => object | undefined, more?: () => [event: string, data: object][]) =>
    streamSSE(c, async (stream) => {
      await streamState(stream, { clock, liveMs, read, ...(more && { more }) })
      if (!stream.aborted && !stream.closed) await stream.writeSSE({ event: 'gone', data: '{}' })
    })

  app.get('/api/live', (c) =>
    follow(c, () => ({
      hubs: Object.fromEntries([...stations].map(([id, station]) => [id, summaryOf(station)])),
      recording: desk.recording(),
      // A run is changed in place, so the sent state must be a copy.
      runs: structuredClone(desk.runs().slice(-SHOWN_RUNS)),
    })),
  )
  app.get('/api/hubs/:id/live', (c) => {
    const station = stationOf(c, stations)
    const { hub, wire, startedAt } = station
    const seen = { acts: numberOf(c, 'acts'), wire: numberOf(c, 'wire') }
    return follow(
      c,
      () => {
        if (stations.get(hub.hardware.hubId) !== station) return undefined
        // The time differs at each poll and is not a change.
        const { time: _, ...state } = hub.state()
        return { ...state, started_at: startedAt }
      },
      () => {
        const acts = hub.actuations(seen.acts)
        const entries = wire.entries(seen.wire, WIRE_BATCH)
        seen.acts = acts.at(-1)?.n ?? seen.acts
        seen.wire = entries.at(-1)?.n ?? seen.wire
        return [...some('acts', acts), ...some('wire', entries)]
      },
    )
  })
}

const some = (event: string, items: readonly object[]): [string, object][] =>
  items.length > 0 ? [[event, items]] : []
