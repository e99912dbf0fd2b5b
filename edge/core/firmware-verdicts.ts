import type { FirmwareOutcome } from '../desired/desired-states.ts'
import type { FirmwareImage } from '../hardware/firmware-images.ts'
import { StorageError } from '../journal/storage-error.ts'
import type { Context } from './context.ts'
import { isHeldByUpdate, type BoardFirmware, type FirmwareAttempt } from './firmware-step.ts'
import { checkUpdates, firmwareAttempts } from './housekeeping.ts'

/**
 * The attempts and verdicts of the controllers' updates, in the journal (serial SPEC §12, “Verdicts”). A verdict is an attempt
 * with an error: the hub has given the image up.
 */

export const attemptOf = (context: Context, controller: string): FirmwareAttempt | undefined =>
  firmwareAttempts(context).find(([id]) => id === controller)?.[1]

export function setAttempt(context: Context, controller: string, attempt: FirmwareAttempt | undefined): void {
  const { [controller]: former, ...others } = context.state.facts.get('firmware')
  if (former === undefined && attempt === undefined) return
  context.state.facts.set('firmware', { ...others, ...(attempt && { [controller]: attempt }) })
  checkUpdates(context)
}

/** The attempt of the controller at this image. */
function attemptAt(
  context: Context,
  controller: string,
  { sum }: FirmwareImage,
): FirmwareAttempt | undefined {
  const attempt = attemptOf(context, controller)
  return attempt?.sum === sum ? attempt : undefined
}

/** The id of the rollout that has brought the running release; null without one. */
const rolloutOf = ({ desired }: Context): string | null => desired?.rollout() ?? null

/** A rollout after the one of the verdict may try the image again, once. An order that may not have arrived is repeated. */
export function mayTryAgain(context: Context, controller: string, image: FirmwareImage): boolean {
  const attempt = attemptAt(context, controller, image)
  const rollout = rolloutOf(context)
  if (attempt === undefined || attempt.error === null || rollout === null) return false
  if (attempt.rollout === rollout || attempt.again === rollout) return false
  return untakenIn(attempt, rollout) < context.settings.firmware.tries
}

/** The orders of a rollout to run the image again that the controller may not have received. */
const untakenIn = ({ untaken }: FirmwareAttempt, rollout: string): number =>
  untaken?.rollout === rollout ? untaken.orders : 0

/** The controller has received the order to run the image. */
export function noteTaken(context: Context, controller: string): void {
  const attempt = attemptOf(context, controller)
  if (attempt?.untaken)
    setAttempt(context, controller, { ...attempt, again: attempt.untaken.rollout, untaken: undefined })
}

/** The image was given up at another controller. */
const isBadElsewhere = (context: Context, controller: string, image: FirmwareImage): boolean =>
  firmwareAttempts(context).some(
    ([id, { sum, error }]) => id !== controller && sum === image.sum && error !== null,
  )

/** Whether the hub may still send the image to the controller, once it connects and the hub is idle. */
export const maySend = (context: Context, controller: string, image: FirmwareImage): boolean =>
  mayTryAgain(context, controller, image) ||
  ((attemptAt(context, controller, image)?.error ?? null) === null &&
    !isBadElsewhere(context, controller, image))

/**
 * Another board is on the line, or its firmware has renewed the memory id. A verdict ends with its board, for a limited number
 * of boards. The tries of an image without a verdict count for the new id, because the image itself may have renewed it.
 */
export function noteBoard(context: Context, controller: string): void {
  const attempt = attemptOf(context, controller)
  const memory = memoryOf(context, controller)
  if (!attempt || attempt.memory === memory) return
  const { error, boards = 0 } = attempt
  // An earlier version of the hub's service stored no memory id: the verdict then belongs to the board that connects first.
  const isSame = attempt.memory === undefined || error === null
  if (isSame || boards + 1 >= context.settings.firmware.boards)
    return setAttempt(context, controller, { ...attempt, memory })
  const again = {
    tries: 0,
    error: null,
    boards: boards + 1,
    isOrdered: undefined,
    isSilent: undefined,
    untaken: undefined,
  }
  setAttempt(context, controller, { ...attempt, memory, ...again })
}

/** `isOrdered`: the hub orders the controller to run the image. Otherwise the controller could not store it. */
export function countTry(
  context: Context,
  controller: string,
  image: FirmwareImage,
  { isOrdered }: { isOrdered?: true } = {},
): void {
  const present = attemptAt(context, controller, image) ?? newAttempt(context, controller, image)
  const rollout = rolloutOf(context)
  const isRetry = present.error !== null && rollout !== null
  const retry =
    isRetry && isOrdered
      ? { untaken: { rollout, orders: untakenIn(present, rollout) + 1 } }
      : { again: rollout }
  setAttempt(context, controller, {
    ...present,
    tries: present.tries + 1,
    isOrdered,
    ...(isRetry && retry),
  })
}

/** `isSilent`: the controller has not reported its firmware since the hub ordered it to run the image. */
export function giveUp(
  context: Context,
  controller: string,
  image: FirmwareImage,
  { error, isSilent }: { error: string; isSilent?: true },
): void {
  context.log.error({ controller, firmware: image.build, error }, 'the hub gives a firmware up')
  const present = attemptAt(context, controller, image) ?? newAttempt(context, controller, image)
  const rollout = rolloutOf(context)
  const isFirst = present.error === null
  const inRollout = isFirst ? { rollout, release: context.software } : { again: rollout, untaken: undefined }
  setAttempt(context, controller, { ...present, ...inRollout, error, isOrdered: undefined, isSilent })
  Object.assign(context.firmware.get(controller) ?? {}, { sent: undefined, bytes: undefined })
}

function newAttempt(context: Context, controller: string, image: FirmwareImage): FirmwareAttempt {
  const { kind, build, sum } = image
  return { kind, build, sum, memory: memoryOf(context, controller), tries: 0, error: null }
}

/** The memory id of the board on a controller's line (serial SPEC §8). */
const memoryOf = ({ state }: Context, controller: string): string | undefined =>
  state.controllers.find(controller)?.memory_id

/**
 * Notes the outcome after each event. The rollout of the hub's release waits for the firmware, and counts the hub as failed if it is
 * given up (MQTT SPEC §12). A confirmed release stays confirmed while a controller connects again.
 */
export function noteOutcome(context: Context): void {
  const { desired, state } = context
  if (!desired) return
  const rollout = rolloutOf(context)
  const present = outcomeOf(context)
  const isConfirmed = state.facts.get('confirmed_release')?.rollout === rollout
  const outcome = present === 'pending' && isConfirmed ? 'done' : present
  const noted = { rollout, outcome }
  if (JSON.stringify(noted) === JSON.stringify(context.firmwareOutcome)) return
  if (outcome === 'done' && !isConfirmed && !confirmRelease(context, rollout)) return
  context.firmwareOutcome = noted
  desired.noteFirmware(rollout, outcome)
}

/** Confirms the release by a row, which proves that its service can store something. */
function confirmRelease({ store, state }: Context, rollout: string | null): boolean {
  if (store.failure() !== undefined) return false
  try {
    store.transact(() => state.facts.set('confirmed_release', { rollout }))
    return true
  } catch (error) {
    if (error instanceof StorageError) return false
    throw error
  }
}

/**
 * A verdict of the present rollout fails it at once. A verdict of an earlier rollout of the same release fails it when the image
 * cannot be tried again. The operator knows the verdict of an earlier release by its alarm.
 */
function outcomeOf(context: Context): FirmwareOutcome {
  const { layout, firmware, firmwareLostAt, images, startedAt, settings, software } = context
  const rollout = rolloutOf(context)
  const attempts = firmwareAttempts(context).filter(([, { sum }]) =>
    images.some((image) => image.sum === sum),
  )
  const verdictOf = (isIn: (attempt: FirmwareAttempt) => boolean) =>
    attempts
      .filter(([, attempt]) => attempt.error !== null && isIn(attempt))
      .map(errorOf)
      .at(0)
  const failed = verdictOf((attempt) => attempt.rollout === rollout)
  if (failed) return failed
  const isAwaited = layout.controllers.some((controller) => {
    // A controller that is lost during an update may return with the new firmware.
    if (attempts.some(([id, { isOrdered }]) => id === controller && isOrdered)) return true
    const board = firmware.get(controller)
    if (board) return isPending(context, controller, board)
    const lostAt = firmwareLostAt.get(controller) ?? startedAt
    return images.length > 0 && context.runtime.clock.monotonic() - lostAt < settings.firmware.afterMs
  })
  if (isAwaited) return 'pending'
  return verdictOf(({ release }) => rollout !== null && release === software) ?? 'done'
}

const errorOf = ([controller, { build, error }]: readonly [string, FirmwareAttempt]) => ({
  error: `controller ${controller}: firmware ${build}: ${error}`,
})

/** Whether the firmware of a connected controller is unknown, on trial, or to be replaced. */
export function isPending(context: Context, controller: string, board: BoardFirmware): boolean {
  if (board.about === null) return false
  if (board.about === undefined || isHeldByUpdate(board)) return true
  const { kind, build } = board.about
  const image = context.images.find((one) => one.kind === kind)
  return image !== undefined && image.build > build && maySend(context, controller, image)
}
