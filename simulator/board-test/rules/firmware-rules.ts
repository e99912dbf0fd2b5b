import { createHash } from 'node:crypto'
import { BLOCK_BYTES, type FrameBody } from '../../../protocol/serial/frames.ts'
import { readImageHeader, type ImageHeader } from '../../../protocol/serial/image.ts'
import type { Bench, Rule } from '../bench.ts'
import { expect, Unasked } from '../host.ts'
import { cutPower } from './memory-rules.ts'

type About = FrameBody<'FW'>
type Image = ImageHeader & { bytes: Uint8Array; sum: string }

const ANSWER_MS = 2000
/** A controller restarts within this time. */
const RESTART_MS = 20_000

const sumOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The controller's report; undefined if it takes no updates. */
async function about({ host }: Bench): Promise<About | undefined> {
  const from = host.heard.length
  const answer = await host.ask({ type: 'FWQ', v: 1 })
  if (answer === 'unsupported') return undefined
  expect(answer === 'ok', `FWQ must be acknowledged, or refused as unsupported; the answer was ${answer}`)
  await host.until(() => host.of('FW', from).length > 0, ANSWER_MS)
  const [frame] = host.of('FW', from)
  expect(frame, `FWQ must be answered with FW; none came within ${ANSWER_MS} ms (SPEC §12)`)
  return frame
}

/** Opens a session, and returns the controller's report and the image for it. Throws `Unasked` without one. */
async function prepared(bench: Bench): Promise<{ now: About; image: Image }> {
  await bench.fresh()
  const now = await about(bench)
  if (!now) throw new Unasked('this firmware takes no updates')
  const header = bench.image && readImageHeader(bench.image)
  if (!bench.image || !header) throw new Unasked('no image is given: --firmware FILE')
  if (header.kind !== now.kind || header.build <= now.build)
    throw new Unasked(
      `the image is ${header.kind} ${header.build}, and the board runs ${now.kind} ${now.build}`,
    )
  return { now, image: { ...header, bytes: bench.image, sum: sumOf(bench.image) } }
}

const announce = ({ host }: Bench, { kind, build, bytes, sum }: Image): Promise<void> =>
  host.accepted({ type: 'IMG', kind, build, size: bytes.length, sum }, 'IMG of a newer image')

const block = (bytes: Uint8Array, at: number) =>
  ({
    type: 'BLK',
    at,
    data: Buffer.from(bytes.subarray(at, at + BLOCK_BYTES)).toString('base64url'),
  }) as const

/** Sends blocks up to `end`. */
async function send({ host }: Bench, bytes: Uint8Array, from = 0, end = bytes.length): Promise<void> {
  for (let at = from; at < end; at += BLOCK_BYTES) await host.accepted(block(bytes, at), `the block at ${at}`)
}

/** Sends a whole image and orders the controller to run it. Waits for the restart. */
async function install(bench: Bench, image: Image): Promise<About> {
  const { host } = bench
  await announce(bench, image)
  await send(bench, image.bytes)
  const before = await host.greet()
  await host.accepted({ type: 'USE', sum: image.sum }, 'USE of a whole, signed image')
  const end = host.now + RESTART_MS
  for (;;) {
    await host.pass(1000)
    await host.open()
    const from = host.heard.length
    host.send({ type: 'HELLO', proto: 3, host: host.newId() })
    await host.until(() => host.of('WELCOME', from).length > 0, ANSWER_MS)
    if (host.of('WELCOME', from).some(({ boot }) => boot !== before.boot)) break
    expect(host.now < end, `the controller must restart after USE; it did not within ${RESTART_MS} ms`)
  }
  await host.greet()
  return (await about(bench))!
}

export const firmwareRules: readonly Rule[] = [
  {
    number: 29,
    title: 'FWQ is answered with FW, or refused as unsupported by firmware that takes no updates',
    async prove(bench) {
      await bench.fresh()
      const found = await about(bench)
      const again = await about(bench)
      expect(found?.build === again?.build, 'two answers to FWQ must name the same firmware')
    },
  },
  {
    number: 30,
    title: 'a block is stored once and in order, and a transfer continues after a power cut',
    power: true,
    async prove(bench) {
      const { host } = bench
      const { image } = await prepared(bench)
      const { bytes, sum } = image
      await announce(bench, image)
      await send(bench, bytes, 0, 2 * BLOCK_BYTES)
      await host.accepted(block(bytes, 0), 'a repeated block')
      const gap = await host.ask(block(bytes, 3 * BLOCK_BYTES))
      expect(gap === 'bad_argument', `a block behind a gap must be refused as bad_argument; it was ${gap}`)
      await cutPower(bench)
      await host.greet()
      const after = await about(bench)
      const at = Math.min(2 * BLOCK_BYTES, bytes.length)
      expect(
        after?.sum === sum && after.at === at,
        `the stored blocks must outlive the power: FW must have at=${at}; it has ${after?.at ?? 'none'}`,
      )
    },
  },
  {
    number: 31,
    title: 'a damaged or wrongly signed image is refused, and the firmware stays',
    async prove(bench) {
      const { host } = bench
      const { now, image } = await prepared(bench)
      const damaged = Uint8Array.from(image.bytes)
      damaged[damaged.length - 70]! ^= 1
      for (const [why, sum] of [
        ['bad_digest', image.sum],
        ['bad_signature', sumOf(damaged)],
      ] as const) {
        await announce(bench, { ...image, sum: '0'.repeat(64) })
        await announce(bench, { ...image, sum })
        await send(bench, damaged)
        const answer = await host.ask({ type: 'USE', sum })
        expect(answer === why, `USE of a damaged image must be refused as ${why}; the answer was ${answer}`)
      }
      const after = await about(bench)
      expect(after?.build === now.build, 'the same firmware must run after a refused image')
    },
  },
  {
    number: 32,
    title: 'a block during a motion is refused as busy',
    async prove(bench) {
      const { host } = bench
      const { image } = await prepared(bench)
      const bin = bench.device('bin')
      await announce(bench, image)
      const { op, from } = await bench.started(bin, 'open_door')
      const answer = await host.ask(block(image.bytes, 0))
      expect(answer === 'busy', `a block during a motion must be refused as busy; the answer was ${answer}`)
      await host.ended(op, from)
    },
  },
  {
    number: 33,
    title:
      'a new firmware that no host keeps returns to the former one at the next start, and a kept one stays',
    power: true,
    async prove(bench) {
      const { host } = bench
      const { now, image } = await prepared(bench)
      const restarted = async (): Promise<About | undefined> => {
        await cutPower(bench)
        await host.greet()
        return about(bench)
      }
      const trial = await install(bench, image)
      expect(
        trial.build === image.build && trial.trial,
        `after USE the image must run with trial=1; FW has build=${trial.build} trial=${Number(trial.trial)}`,
      )
      const former = await restarted()
      expect(
        former?.build === now.build && !former.trial,
        `without KEEP firmware ${now.build} must return at the next start; ${former?.build} runs`,
      )
      await install(bench, image)
      await host.accepted({ type: 'KEEP', build: image.build })
      const after = await restarted()
      expect(
        after?.build === image.build && !after.trial,
        `after KEEP firmware ${image.build} must stay; ${after?.build} runs`,
      )
    },
  },
]
