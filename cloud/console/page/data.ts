import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { pause } from '../../../protocol/ui/live.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { AskError, awaySince, can, client, hasExpired, isSignedIn, session } from './session.ts'
import { rejoin } from './sign-in.ts'

/** Grows when shown data may be old: at an event, at intervals, and after an action. */
const beat = signal(0)

const readAgain = (): void => void (beat.value += 1)

/** Reads all shown data again, after an action. */
export function refresh(): void {
  kept.clear()
  readAgain()
}

const INTERVAL_MS = 20_000
const AWAY_MS = 2_000
/** Several events within this time cause one reading. Most routes allow 360 calls a minute, some fewer (`GET /owners/hubs`: 90). */
const GATHER_MS = 1_000

/** Readings that seldom change, by their names. */
const kept = new Map<string, { readAt: number; data: Promise<unknown> }>()
const KEPT_MS = 60_000
session.subscribe((known) => {
  kept.clear()
  if (known) readAgain()
})

/** Data that several parts of the console need and that seldom changes: they share one reading a minute. */
export function keep<T>(name: string, load: () => Promise<T>): Promise<T> {
  const known = kept.get(name)
  if (known && epochMs() - known.readAt < KEPT_MS) return known.data as Promise<T>
  const data = load()
  kept.set(name, { readAt: epochMs(), data })
  data.catch(() => kept.delete(name))
  return data
}

async function beatAtIntervals(): Promise<never> {
  for (;;) {
    await pause(awaySince.value === null ? INTERVAL_MS : AWAY_MS)
    if (document.hidden) continue
    if (hasExpired.value) await rejoin()
    else if (session.value) readAgain()
  }
}

/** Reads the shown data again soon after each event of the hubs, while the page is visible. */
async function followEvents(): Promise<void> {
  let isGathering = false
  for (;;) {
    const stop = new AbortController()
    const end = (): void => void (document.hidden && stop.abort())
    document.addEventListener('visibilitychange', end)
    try {
      if (!document.hidden && isSignedIn() && can('events:read'))
        for await (const _ of client.live('GET /owners/events/stream', { signal: stop.signal })) {
          if (isGathering) continue
          isGathering = true
          void pause(GATHER_MS).then(() => {
            isGathering = false
            readAgain()
          })
        }
    } catch {
      // The intervals continue.
    }
    document.removeEventListener('visibilitychange', end)
    await pause(AWAY_MS)
  }
}

/** Keeps the shown data current. */
export function keepCurrent(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return
    if (hasExpired.value) void rejoin()
    else readAgain()
  })
  void beatAtIntervals()
  void followEvents()
}

/** Data of the service, and why it could not be read. Data of an earlier reading stays. */
export interface Data<T> {
  data: T | undefined
  failure: string | undefined
  /** The failure: there is no such thing, or the person may not see it. */
  isMissing?: boolean
}

/**
 * Reads data for a component, again with other `keys`, and whenever the data may be old. Each reading ends before the next
 * begins: with readings that take longer than the events are apart, no reading would ever be shown.
 */
export function useData<T>(load: () => Promise<T>, keys: readonly unknown[]): Data<T> {
  const key = JSON.stringify(keys)
  const [read, setRead] = useState<Data<T> & { key: string }>({ key, data: undefined, failure: undefined })
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    let isOver = false
    const readOnce = oneAtATime(async () => {
      if (isOver) return
      try {
        const data = await latest.current()
        if (!isOver) setRead({ key, data, failure: undefined })
      } catch (error) {
        if (isOver) return
        const isMissing = error instanceof AskError && error.isMissing
        setRead((before) => ({
          key,
          data: before.key === key ? before.data : undefined,
          failure: (error as Error).message,
          isMissing,
        }))
      }
    })
    const end = beat.subscribe(() => void readOnce())
    return () => {
      isOver = true
      end()
    }
  }, [key])
  return read.key === key ? read : { data: undefined, failure: undefined }
}
