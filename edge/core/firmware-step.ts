import { BLOCK_BYTES, type FrameBody } from '../../protocol/serial/frames.ts'
import type { FirmwareImage } from '../hardware/firmware-images.ts'

/** The image that a controller was given, until it runs it. In the journal. */
export interface FirmwareAttempt {
  kind: string
  build: number
  sum: string
  /** The memory id of its board. Absent: an earlier version of the hub's service wrote the attempt. */
  memory?: string | undefined
  /** How often the controller was ordered to run it, or could not store it. */
  tries: number
  /** Why the hub gave the image up: the verdict. */
  error: string | null
  /** The rollout in which the hub gave the image up; null: without a rollout. Absent: no verdict, or one of an earlier version. */
  rollout?: string | null | undefined
  /** The release of the hub's service that gave the image up. Absent: no verdict, or one of an earlier version. */
  release?: string | undefined
  /** The latest later rollout in which the hub has tried the image again. */
  again?: string | null | undefined
  /** The orders to run the image again in a later rollout. The controller may not have received them. */
  untaken?: { rollout: string; orders: number } | undefined
  /** The number of earlier boards on the controller's line that failed at the image. */
  boards?: number | undefined
  /** The controller was ordered to run it, and has reported no kept firmware since. */
  isOrdered?: true | undefined
  /** The hub gave the image up because the controller did not report after the order. */
  isSilent?: true | undefined
}

/** A controller's firmware on its present connection. In memory only: the controller reports it again. */
export interface BoardFirmware {
  /** The answer to FWQ; null if the controller has none, undefined before it. */
  about: FrameBody<'FW'> | null | undefined
  /** A request has no answer yet. */
  isWaiting: boolean
  /** The image on its way. */
  bytes: Uint8Array | undefined
  /** The bytes that the controller has stored; undefined before it has taken IMG. */
  sent: number | undefined
  /** The controller restarts with the new firmware. */
  isSwitching: boolean
  /** On the monotonic clock of the core. */
  notBefore: number
  /** Start of the wait for an answer, for FW or for the restart. */
  waitsSince: number | undefined
}

export const newBoard = (): BoardFirmware => ({
  about: undefined,
  isWaiting: false,
  bytes: undefined,
  sent: undefined,
  isSwitching: false,
  notBefore: 0,
  waitsSince: undefined,
})

/** The hub does not know yet which firmware runs, or that firmware is on trial: the controller must move nothing. */
export const isHeldByUpdate = ({ about, isSwitching }: BoardFirmware): boolean =>
  isSwitching || about === undefined || about?.trial === true

/**
 * The controller receives firmware now, restarts with it, or has it on trial. A transfer that pauses, for example for an
 * acceptance, is no reason to wait: it continues after a restart.
 */
export const isTaking = ({ about, isSwitching, isWaiting, bytes }: BoardFirmware): boolean =>
  isSwitching || (isWaiting && bytes !== undefined) || about?.trial === true

/** An update of the controller may have begun, and has not ended. */
export const isUpdating = (board: BoardFirmware): boolean =>
  isHeldByUpdate(board) || board.bytes !== undefined

export interface FirmwareView {
  board: BoardFirmware
  image: FirmwareImage | undefined
  attempt: FirmwareAttempt | undefined
  /** The image was given up at this controller in an earlier rollout, and the present one may try it again. */
  isRetry: boolean
  /** No verdict about the image, here or at another controller, forbids to send it. */
  maySend: boolean
  /** The controller is this hub's, and its memory is reconciled with the journal. */
  isReconciled: boolean
  /** Its bins have reported their position. */
  hasReported: boolean
  /** No order is in progress, and nothing moves. */
  isIdle: boolean
  /** The hub updates no further controller. */
  isAlone: boolean
  /** Milliseconds until the controller may be asked again after a refusal. */
  restMs: number
  /** Milliseconds until transfers may begin after the start of the hub. */
  afterMs: number
  maxTries: number
  /** Milliseconds that the controller has left to answer, to send FW or to restart, if the hub waits. */
  graceMs: number | undefined
}

export type FirmwareStep =
  | { do: 'ask' }
  | { do: 'keep'; build: number }
  | { do: 'begin'; image: FirmwareImage }
  | { do: 'block'; at: number; data: string }
  | { do: 'use'; image: FirmwareImage }
  | { do: 'give_up'; image: FirmwareImage; error: string }
  /** The controller has broken the protocol: it has not answered, has not sent FW, or has not restarted. */
  | { do: 'forget' }
  /** `ms`: time alone requires a step. */
  | { do: 'wait'; ms?: number }

/** The next step of a controller's update. */
export function firmwareStep(view: FirmwareView): FirmwareStep {
  const { board, image, attempt, isRetry, isReconciled, restMs, afterMs, graceMs } = view
  const { about, sent, bytes } = board
  if (isReconciled && graceMs !== undefined)
    return graceMs > 0 ? { do: 'wait', ms: graceMs } : { do: 'forget' }
  if (!isReconciled || board.isWaiting || board.isSwitching || about === null) return { do: 'wait' }
  if (restMs > 0) return { do: 'wait', ms: restMs }
  if (about === undefined) return { do: 'ask' }
  if (about.trial) return view.hasReported ? { do: 'keep', build: about.build } : { do: 'wait' }
  if (!image || image.build <= about.build || !view.maySend) return { do: 'wait' }
  if (image.size > about.room)
    return { do: 'give_up', image, error: `its ${image.size} bytes do not fit into ${about.room}` }
  if (!isRetry && attempt?.sum === image.sum && attempt.tries >= view.maxTries)
    return { do: 'give_up', image, error: `the controller keeps firmware ${about.build}` }
  if (afterMs > 0) return { do: 'wait', ms: afterMs }
  if (!view.isIdle || !view.isAlone) return { do: 'wait' }
  if (sent === undefined || !bytes) return { do: 'begin', image }
  if (sent >= image.size) return { do: 'use', image }
  const block = bytes.subarray(sent, sent + BLOCK_BYTES)
  return { do: 'block', at: sent, data: Buffer.from(block).toString('base64url') }
}
