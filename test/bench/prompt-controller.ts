import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { decodeFrame, encodeFrame } from '../../protocol/serial/codec.ts'
import { SERIAL_PROTOCOL_VERSION, type FrameBody, type FrameType } from '../../protocol/serial/frames.ts'

/** Bins with an open door and a lowered lift. */
const BINS = [1, 2, 3, 4]

/**
 * A controller that ends every motion at once: it reports that the device is already in position
 * (protocol/serial/SPEC.md §6). It adds no time to the measurement, and sends all answers.
 */
export function createPromptController(random: Random, send: (line: string) => void): (line: string) => void {
  const boot = randomHex(random, 4)
  const mem = randomHex(random, 4)
  let seq = 0
  let eventNumber = 0
  let welcomeSeq = -1
  let eventSeq = -1
  let untold: number[] = []

  function transmit<T extends FrameType>(type: T, body: FrameBody<T>): number {
    seq = (seq + 1) % 65_536
    send(encodeFrame({ seq, type, ...body } as never))
    return seq
  }

  /** One event at a time, in the order of the devices (§5). */
  function reportNext(): void {
    const bin = untold.shift()
    if (bin === undefined) return
    eventSeq = transmit('EVT', {
      ev: ++eventNumber,
      dev: `bin-${bin}`,
      door: 'open',
      lift: 'down',
      occ: false,
    })
  }

  return (line) => {
    const decoded = decodeFrame(line)
    if (!decoded.ok) return
    const { frame } = decoded
    switch (frame.type) {
      case 'HELLO':
        transmit('ACK', { s: frame.seq })
        untold = [...BINS]
        welcomeSeq = transmit('WELCOME', {
          proto: SERIAL_PROTOCOL_VERSION,
          host: frame.host,
          fw: 'bench',
          boot,
          mem,
          last: undefined,
          count: 0,
          hub: 1,
          ctl: 'bins',
          store: mem,
        })
        return
      case 'ACK':
        if (frame.s === welcomeSeq || frame.s === eventSeq) reportNext()
        return
      case 'PING':
        transmit('PONG', { t: frame.t })
        return
      case 'CMD':
      case 'QRY':
        transmit('ACK', { s: frame.seq })
        transmit('RES', { op: frame.op, state: 'done', why: undefined, moved: false, drops: 0, ms: 0 })
        return
      case 'OWN':
        transmit('ACK', { s: frame.seq })
        return
      case 'LST':
        transmit('ACK', { s: frame.seq })
        transmit('END', { n: 0 })
        return
      case 'FWQ':
      case 'IMG':
      case 'BLK':
      case 'USE':
      case 'KEEP':
        transmit('NAK', { s: frame.seq, why: 'unsupported' })
        return
      case 'NAK':
      case 'FW':
      case 'WELCOME':
      case 'PONG':
      case 'RES':
      case 'OPS':
      case 'END':
      case 'EVT':
        return
    }
  }
}
