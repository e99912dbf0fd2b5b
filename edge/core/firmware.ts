import type { FrameBody, Refusal } from '../../protocol/serial/frames.ts'
import type { FirmwareImage } from '../hardware/firmware-images.ts'
import type { FirmwareRequest } from '../hardware/link-state.ts'
import type { Context } from './context.ts'
import { binDevice } from './layout.ts'
import { firmwareStep, isUpdating, newBoard, type BoardFirmware, type FirmwareStep } from './firmware-step.ts'
import { earliest } from './step.ts'
import {
  attemptOf,
  countTry,
  giveUp,
  isPending,
  maySend,
  mayTryAgain,
  noteBoard,
  noteTaken,
  setAttempt,
} from './firmware-verdicts.ts'

/**
 * Updates of the controllers' firmware (serial SPEC §12). The hub sends an image while no order is in progress and nothing
 * moves. The controller stores each block, so the transfer continues after a cut.
 */

/** Time in which a controller answers a request, sends FW after it took FWQ, and restarts after it took USE. */
const GRACE_MS = 30_000

/** A controller has connected. Only the hub's own controllers are updated. */
export function meetFirmware(context: Context, controller: string): void {
  const { firmware, images, devices } = context
  firmware.delete(controller)
  if (!devices.isUp(controller)) return
  noteBoard(context, controller)
  if (images.length > 0) firmware.set(controller, newBoard())
}

/** The connection is lost. A controller that restarts for its new firmware stays the only one under update. */
export function loseFirmware(context: Context, controller: string): void {
  const { firmware, firmwareLostAt } = context
  const board = firmware.get(controller)
  if (!board || board.isSwitching) return
  if (board.about) noteSeen(context, controller)
  // It may return at once, and get the image then.
  // A line that flaps before the controller reports its firmware does not extend the wait for it.
  const lostAt = board.about === undefined ? firmwareLostAt.get(controller) : undefined
  if (isPending(context, controller, board))
    firmwareLostAt.set(controller, lostAt ?? context.runtime.clock.monotonic())
  else firmwareLostAt.delete(controller)
  firmware.delete(controller)
}

/** The controller reports its firmware. */
export function noteFirmware(context: Context, controller: string, about: FrameBody<'FW'>): void {
  const board = context.firmware.get(controller)
  if (!board) return
  Object.assign(board, { about, isWaiting: false, waitsSince: undefined })
  noteSeen(context, controller)
  if (about.trial) return noteTaken(context, controller)
  const attempt = attemptOf(context, controller)
  if (!attempt) return
  if (about.build >= attempt.build) return setAttempt(context, controller, undefined)
  const mayTry = attempt.isSilent && attempt.tries < context.settings.firmware.tries
  if (mayTry || attempt.isOrdered)
    setAttempt(context, controller, {
      ...attempt,
      isOrdered: undefined,
      ...(mayTry && { error: null, isSilent: undefined }),
    })
}

const noteSeen = (context: Context, controller: string): void =>
  void context.firmwareSeenAt.set(controller, context.runtime.clock.monotonic())

/** The controller took a request, or refused it. */
export function noteFirmwareAnswer(
  context: Context,
  controller: string,
  request: FirmwareRequest,
  why: Refusal | undefined,
): void {
  const board = context.firmware.get(controller)
  if (!board) return
  const isTaken = why === undefined
  const isAwaited = isTaken && (request.type === 'FWQ' || request.type === 'USE')
  board.waitsSince = isAwaited ? context.runtime.clock.monotonic() : undefined
  // FW follows the acknowledgement of FWQ.
  if (isTaken && request.type === 'FWQ') return
  board.isWaiting = false
  if (why !== undefined) return noteRefused(context, controller, board, request, why)
  switch (request.type) {
    case 'FWQ':
      return
    case 'IMG':
      board.sent = board.about?.sum === request.sum ? (board.about.at ?? 0) : 0
      return
    case 'BLK':
      board.sent = request.at + Buffer.from(request.data, 'base64url').length
      return
    case 'USE':
      board.isSwitching = true
      return noteTaken(context, controller)
    case 'KEEP':
      context.log.info({ controller, firmware: request.build }, 'the controller keeps its new firmware')
      if (board.about) board.about = { ...board.about, trial: false }
      setAttempt(context, controller, undefined)
  }
}

function noteRefused(
  context: Context,
  controller: string,
  board: BoardFirmware,
  request: FirmwareRequest,
  why: Refusal,
): void {
  if (request.type === 'FWQ') return void (board.about = null)
  board.notBefore = context.runtime.clock.monotonic() + context.settings.firmware.retryMs
  if (why === 'busy') return
  const image = board.about && imageOf(context, board.about.kind)
  const isFinal = why === 'bad_signature' || (request.type === 'IMG' && why !== 'memory_fault')
  if (image && isFinal)
    return giveUp(context, controller, image, { error: `the controller refuses it: ${why}` })
  // The transfer begins again by the controller's report. A controller that cannot store an image is given up in the end.
  if (image && request.type !== 'USE') countTry(context, controller, image)
  Object.assign(board, { about: undefined, sent: undefined, bytes: undefined })
}

/** Requests the next step of each controller. Returns the milliseconds until time alone requires a step. */
export function watchFirmware(context: Context): number | undefined {
  const { firmware, images, layout } = context
  const silences = layout.controllers.map((controller) => watchSilence(context, controller))
  if (images.length === 0) return undefined
  const steps = layout.controllers.map((controller) => {
    const board = firmware.get(controller)
    return board && takeStep(context, controller, board)
  })
  return earliest([...silences, ...steps])
}

/** The image that the controller was ordered to run, while its firmware is unknown since then. */
function awaitedImage(context: Context, controller: string): FirmwareImage | undefined {
  const attempt = attemptOf(context, controller)
  const board = context.firmware.get(controller)
  if (!attempt?.isOrdered || (board?.about && !board.isSwitching)) return undefined
  return context.images.find(({ sum }) => sum === attempt.sum)
}

/** Gives a firmware up if its controller does not report after the order to run it. The board may be defective. */
function watchSilence(context: Context, controller: string): number | undefined {
  const { firmware, firmwareSeenAt, devices, startedAt, settings } = context
  const image = awaitedImage(context, controller)
  if (!image) return undefined
  const { silentMs } = settings.firmware
  const leftMs = (firmwareSeenAt.get(controller) ?? startedAt) + silentMs - context.runtime.clock.monotonic()
  if (leftMs > 0) return leftMs
  // The other controllers are no longer held up by this one.
  if (devices.isUp(controller)) firmware.set(controller, { ...newBoard(), about: null })
  else firmware.delete(controller)
  const minutes = Math.round(silentMs / 60_000)
  const error = `the controller has not reported its firmware within ${minutes} minutes after its update`
  giveUp(context, controller, image, { error, isSilent: true })
  return undefined
}

function takeStep(context: Context, controller: string, board: BoardFirmware): number | undefined {
  const { settings, startedAt, state, layout, devices, firmware, cycling } = context
  const now = context.runtime.clock.monotonic()
  const image = board.about ? imageOf(context, board.about.kind) : undefined
  const isSendable = image !== undefined && maySend(context, controller, image)
  // A transfer that nothing continues must not hold the other controllers.
  if (image && !board.isWaiting && !isSendable) Object.assign(board, { bytes: undefined, sent: undefined })
  const step = firmwareStep({
    board,
    image,
    attempt: attemptOf(context, controller),
    isRetry: image !== undefined && mayTryAgain(context, controller, image),
    maySend: isSendable,
    isReconciled: devices.isUp(controller) && state.controllers.find(controller)?.reconciled === true,
    hasReported: layout.bins.every(
      ({ number }) =>
        layout.controllerOf(binDevice(number)) !== controller || devices.bin(number).hasReported,
    ),
    isIdle:
      state.orders.unfinished().length === 0 &&
      state.operations.open().length === 0 &&
      cycling.size === 0 &&
      state.acceptances.open() === undefined,
    isAlone:
      [...firmware].every(([id, other]) => id === controller || !isUpdating(other)) &&
      layout.controllers.every((id) => id === controller || !awaitedImage(context, id)),
    restMs: Math.max(0, board.notBefore - now),
    afterMs: Math.max(0, startedAt + settings.firmware.afterMs - now),
    maxTries: settings.firmware.tries,
    graceMs: board.waitsSince === undefined ? undefined : Math.max(0, board.waitsSince + GRACE_MS - now),
  })
  if (step.do === 'wait') return step.ms
  perform(context, controller, board, step)
  // The orders that waited go on at once.
  return step.do === 'forget' ? 0 : undefined
}

function perform(
  context: Context,
  controller: string,
  board: BoardFirmware,
  step: Exclude<FirmwareStep, { do: 'wait' }>,
): void {
  const send = (request: FirmwareRequest): void => sendAfterCommit(context, controller, board, request)
  switch (step.do) {
    case 'ask':
      return send({ type: 'FWQ', v: 1 })
    case 'keep':
      return send({ type: 'KEEP', build: step.build })
    case 'begin':
      return begin(context, controller, board, step.image)
    case 'block':
      return send({ type: 'BLK', at: step.at, data: step.data })
    case 'use':
      countTry(context, controller, step.image, { isOrdered: true })
      noteSeen(context, controller)
      return send({ type: 'USE', sum: step.image.sum })
    case 'give_up':
      return giveUp(context, controller, step.image, step)
    case 'forget':
      return forget(context, controller, board)
  }
}

/** The controller sells on: without updates if it has not sent FW, else until the hub has asked it again. */
function forget({ log, firmware }: Context, controller: string, { isSwitching, about }: BoardFirmware): void {
  const step = isSwitching ? 'restarted with its new firmware' : 'answered a step of its update'
  log.warn({ controller }, `the controller has not ${about ? step : 'reported its firmware'}`)
  firmware.set(controller, about ? newBoard() : { ...newBoard(), about: null })
}

function sendAfterCommit(
  { store, controllers, checkpoint, runtime }: Context,
  controller: string,
  board: BoardFirmware,
  request: FirmwareRequest,
): void {
  const undo = (): void => void Object.assign(board, { isWaiting: false, waitsSince: undefined })
  // An effect of the same event may begin another one before the request is sent.
  Object.assign(board, { isWaiting: true, waitsSince: runtime.clock.monotonic() })
  store.note({ undo, again: () => {} })
  store.afterCommit(() => {
    checkpoint(`core.before-firmware-${request.type}`)
    controllers.updateFirmware(controller, request)
    checkpoint(`core.after-firmware-${request.type}`)
  })
}

function begin(context: Context, controller: string, board: BoardFirmware, image: FirmwareImage): void {
  const { log, settings } = context
  const { kind, build, size, sum } = image
  board.bytes = image.read()
  if (board.bytes) {
    log.info({ controller, firmware: build }, 'the hub sends a new firmware to a controller')
    return sendAfterCommit(context, controller, board, { type: 'IMG', kind, build, size, sum })
  }
  board.notBefore = context.runtime.clock.monotonic() + settings.firmware.retryMs
  log.warn({ controller, firmware: build }, 'the file of a firmware cannot be read, or has changed')
}

const imageOf = ({ images }: Context, kind: string): FirmwareImage | undefined =>
  images.find((image) => image.kind === kind)
