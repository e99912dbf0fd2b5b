import type { FirmwareOutcome } from '../desired/desired-states.ts'
import type { FirmwareImage } from '../hardware/firmware-images.ts'
import { StorageError } from '../journal/storage-error.ts'
import type { Context } from './context.ts'
import { isHeldByUpdate, type FirmwareAttempt } from './firmware-step.ts'
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

/** A rollout after the one of the verdict may try the image again, once. */
export function mayTryAgain(context: Context, controller: string, image: FirmwareImage): boolean {
  const attempt = attemptAt(context, controller, image)
  const rollout = rolloutOf(context)
  if (attempt === undefined || attempt.error === null || rollout === null) return false
  return attempt.rollout !== rollout && attempt.again !== rollout
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
  const again = { tries: 0, error: null, boards: boards + 1, isOrdered: undefined, isSilent: undefined }
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
  const isRetry = present.error !== null
  setAttempt(context, controller, {
    ...present,
    tries: present.tries + 1,
    isOrdered,
    ...(isRetry && { again: rolloutOf(context) }),
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
  const inRollout = present.error === null ? { rollout } : { again: rollout }
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

/** The rollout of the hub's release waits for the firmware, and counts the hub as failed if it is given up (MQTT SPEC §12). */
export function noteOutcome(context: Context): void {
  const { store, desired } = context
  if (!desired) return
  const noted = { rollout: rolloutOf(context), outcome: outcomeOf(context) }
  if (JSON.stringify(noted) === JSON.stringify(context.firmwareOutcome)) return
  store.afterCommit(() => {
    if (!context.firmwareOutcome && !canStore(context)) return
    context.firmwareOutcome = noted
    desired.noteFirmware(noted.rollout, noted.outcome)
  })
}

/**
 * Proves by a row that this process can store something; otherwise it has not confirmed its release. A transaction without a
 * change commits on a full disk, too.
 */
function canStore({ store, state }: Context): boolean {
  if (store.failure() !== undefined) return false
  const { facts } = state
  try {
    store.transact(() => facts.set('proven_starts', facts.get('proven_starts') + 1))
    return true
  } catch (error) {
    if (error instanceof StorageError) return false
    throw error
  }
}

/** Only a verdict of the present rollout fails it: the operator knows an earlier one by its alarm. */
function outcomeOf(context: Context): FirmwareOutcome {
  const { layout, firmware, images, runtime, startedAt, settings } = context
  const rollout = rolloutOf(context)
  const attempts = firmwareAttempts(context).filter(([, { sum }]) =>
    images.some((image) => image.sum === sum),
  )
  const failed = attempts.find(([, attempt]) => attempt.error !== null && attempt.rollout === rollout)
  if (failed) {
    const [controller, { build, error }] = failed
    return { error: `controller ${controller}: firmware ${build}: ${error}` }
  }
  if (images.length === 0) return 'done'
  const mayConnect = runtime.clock.monotonic() - startedAt < settings.firmware.afterMs
  const isPending = layout.controllers.some((controller) => {
    const board = firmware.get(controller)
    // A controller that is lost during an update may return with the new firmware.
    const isAwaited = attempts.some(([id, { isOrdered }]) => id === controller && isOrdered)
    if (isAwaited) return true
    if (!board) return mayConnect
    if (board.about === null) return false
    if (board.about === undefined || isHeldByUpdate(board)) return true
    const { kind, build } = board.about
    const image = images.find((one) => one.kind === kind)
    return image !== undefined && image.build > build && maySend(context, controller, image)
  })
  return isPending ? 'pending' : 'done'
}
