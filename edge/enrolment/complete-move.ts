import * as files from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { createLayout } from '../core/layout.ts'
import { isThere, textIfThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { releaseBallast } from '../journal/ballast.ts'
import { carryOver, FormerUnreadable, type CarryOverOptions } from '../journal/carry-over.ts'
import { Sqlite } from '../journal/sqlite-driver.ts'
import { lockStore } from '../journal/store-lock.ts'
import { updateFiles } from '../update/files.ts'
import { enrolmentFiles, nextKey, type HubPlace } from './enrolment.ts'
import { erasePage } from './erase.ts'
import { keepForFarewell } from './farewell.ts'
import { install, readLeaving } from './install.ts'
import { unreadFile } from './leave.ts'

/**
 * Starts that cannot read the former journal before it counts as damaged. The supervisor starts the service again after a second,
 * and a bad card or a full table of open files may recover. A permanent error must not keep the hub from its next cell. Nothing
 * paid is in that journal: the hub left without an open order or motion, and the former cell had all its reports.
 */
const STARTS = 60

/** A move could not be completed. The next start tries it again. */
export class MoveFailed extends Error {}

/**
 * Completes a move to another cell, before anything else reads the files: the cloud has ordered this board to leave
 * (`leave.ts`). Only the process that may use the journal does it.
 */
export function completeMove(
  place: HubPlace,
  clock: Pick<Clock, 'now'>,
  log: Log,
  { starts = STARTS } = {},
): void {
  if (!isMoving(place, log)) return
  try {
    const since = new Date(clock.now()).toISOString()
    const lock = lockStore(place.store, { pid: process.pid, since })
    try {
      complete(place, { now: clock.now(), log, starts })
    } finally {
      lock.release()
    }
  } catch (error) {
    const why = `STORE: the move to another cell is not complete: ${problemOf(error)}`
    throw new MoveFailed(why, { cause: error })
  }
}

/** A storage failure must not end the process. An enrolled board then cannot read its enrolment either, so it does not start as the former hub. */
function isMoving({ store }: HubPlace, log: Log): boolean {
  const { moving } = enrolmentFiles(store)
  try {
    return isThere(moving)
  } catch (error) {
    log.warn({ error: problemOf(error) }, `${moving} cannot be looked for`)
    return false
  }
}

/**
 * Each step can be repeated, and the file of the order is removed last: after a power failure the next start repeats all of them.
 * The former journal stays beside the new one.
 */
function complete(place: HubPlace, { now, log, starts }: { now: number; log: Log; starts: number }): void {
  const { store } = place
  const { moving, next, key } = enrolmentFiles(store)
  const found = readLeaving(store, log)
  // The former cloud has retired this hub, so its enrolment here must not be used again.
  if (!found)
    throw new Error(
      `${moving} and ${next} are damaged. Set the hub to maintenance in the other cell until its probes show cold fridges. Remove both files, rename ${store} and its -wal and -shm, and enrol this board in the other cell by hand (larder hubs claim-code there, then larder enroll)`,
    )
  const { answer, former_hub_id } = found
  const former = `${store}.former`
  // The order to leave has removed an older journal (`leave.ts`).
  const hasBegun = [former, `${former}-wal`, `${former}-shm`].some(isThere)
  if (!hasBegun && Date.parse(answer.expires_at) <= now) {
    // The board was off for long. Its login in the former cell lasts until it has left, and it gets another code there.
    log.error({ as: answer.hub_id }, 'the certificate of the other cell has expired: this board stays')
    return files.rmSync(moving, { force: true })
  }
  // The disk may be full. The next journal reserves this room again, if it is there.
  releaseBallast(`${store}.ballast`)
  if (!isThere(former)) renameJournal(store, former)
  const { fridges } = createLayout(HardwareDescription.parse(answer.hardware))
  const numbers = fridges.map(({ number }) => number)
  carryOverInTime(former, starts, { path: store, hubId: answer.hub_id, fridges: numbers, log })
  // The former cloud wants a release there, and has its own list. The root stays: only that root can sign the next one.
  const { desired, root, list } = updateFiles(store)
  for (const path of [desired, ...list]) files.rmSync(path, { force: true })
  const own = textIfThere(root)
  keepForFarewell(store, former_hub_id, log)
  install(place, found.key, { ...answer, ...(own !== undefined && { update_root: own }) }, former_hub_id)
  files.rmSync(nextKey(key), { force: true })
  erasePage(store)
  files.rmSync(unreadFile(former), { force: true })
  files.rmSync(next, { force: true })
  files.rmSync(moving)
}

/** Counts the starts that cannot read the former journal. */
function carryOverInTime(former: string, starts: number, options: CarryOverOptions): void {
  const path = unreadFile(former)
  const unread = Number(textIfThere(path) ?? 0) || 0
  try {
    carryOver(former, { ...options, isGivenUp: unread >= starts })
  } catch (error) {
    if (error instanceof FormerUnreadable) replaceText(path, String(unread + 1))
    throw error
  }
}

function renameJournal(store: string, former: string): void {
  // An earlier start has moved the log: without it the journal must not be opened.
  if (!isThere(`${former}-wal`)) closeLog(store)
  // The journal is last: while it has its name, the next start renames the others.
  for (const suffix of ['-wal', '-shm', ''])
    if (isThere(store + suffix)) files.renameSync(store + suffix, former + suffix)
}

/** Moves the log of the journal into its file, so that usually only one file needs another name. */
function closeLog(store: string): void {
  if (!isThere(store)) return
  try {
    const db = new Sqlite(store)
    try {
      db.pragma('wal_checkpoint(TRUNCATE)')
    } finally {
      db.close()
    }
  } catch {
    // The disk is full, or the journal is damaged: its log stays beside it.
  }
}
