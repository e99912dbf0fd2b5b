import { randomBytes } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { Diagnoses, type Answer } from '../../../cloud/gateway/diagnoses.ts'
import { Unavailable } from '../../../cloud/platform/work/runner.ts'
import { Diagnoser } from '../../../edge/diagnosis/diagnosis.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { DiagnosisPart, MAX_BUNDLE_BYTES, type Diagnosis } from '../../../protocol/mqtt/diagnosis.ts'
import { downTopic } from '../../../protocol/mqtt/topics.ts'
import type { TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { uuid } from '../../support/uuid.ts'
import { virtualClock, type VirtualClock } from '../../world/clock.ts'

const LOGS: Diagnosis = { kind: 'logs', since_ms: 60_000, limit: 10_000 }
/** 64 kbit/s. */
const SLOW = 8
/** Headers of TCP, TLS and MQTT. */
const HEADERS = 150

/** One direction of a line: messages follow one another at so many bytes in a millisecond. */
function oneWay(clock: VirtualClock, bytesPerMs: number) {
  let freeMs = 0
  const sent = { bytes: 0, busyMs: 0 }
  return {
    sent,
    send(bytes: number, deliver: () => void): void {
      const tookMs = (bytes + HEADERS) / bytesPerMs
      sent.bytes += bytes + HEADERS
      sent.busyMs += tookMs
      freeMs = Math.max(freeMs, clock.monotonic()) + tookMs
      clock.after(freeMs - clock.monotonic(), deliver)
    },
  }
}

/** A hub and a cloud on a line. */
function connected({ bytesPerMs = 1000, lines = ['{"message":"a"}'], bundle = Buffer.alloc(0) } = {}) {
  const clock = virtualClock()
  const [up, down] = [oneWay(clock, bytesPerMs), oneWay(clock, bytesPerMs)]
  const parts: number[] = []
  let handlers: TransportHandlers
  const open = () => {
    const diagnoser = new Diagnoser({
      hubId: 1,
      log: silentLog,
      lines: { read: () => ({ lines, cursor: 'run.1' }) },
      bundle: () => Promise.resolve(bundle),
      redact: (text) => text.replaceAll('secret', '[removed]'),
    })
    diagnoser.over((_options, given) => {
      handlers = given
      return {
        publish(_topic, payload) {
          parts.push(payload.length)
          up.send(payload.length, () => diagnoses.onPart(1, DiagnosisPart.parse(JSON.parse(payload))))
          return Promise.resolve(true)
        },
        close() {},
      }
    })({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
  }
  open()
  let isSilent = false
  const diagnoses = new Diagnoses({
    clock,
    listen: () => Promise.resolve(true),
    publish(hubId, request) {
      const payload = JSON.stringify(request)
      const topic = downTopic(hubId, 'diagnosis')
      if (!isSilent) down.send(payload.length, () => handlers.onMessage(topic, payload))
      return true
    },
  })
  let readings = 0
  /** Reads while the clock moves on. */
  async function read(wanted: Diagnosis = LOGS, each: () => void = () => {}): Promise<Answer> {
    const onPart = (): Promise<boolean> => Promise.resolve(true)
    const request = uuid(++readings)
    const reading = diagnoses.read({ hubId: 1, request, wanted, withinMs: 3_600_000, onPart })
    const state = { isOver: false }
    const over = reading.finally(() => (state.isOver = true))
    over.catch(() => {})
    const before = parts.length
    for (let ms = 0; !state.isOver; ms += 10) {
      await new Promise((done) => setImmediate(done))
      clock.advance(10)
      each()
      // The hub compresses in real time.
      if (ms === 100 && !isSilent && wanted.kind === 'logs')
        await vi.waitUntil(() => parts.length > before, { timeout: 30_000 })
    }
    return over
  }
  return { clock, up, down, parts, diagnoses, read, restart: open, silence: () => (isSilent = true) }
}

/** Text that does not compress well. */
const record = (n: number): string => JSON.stringify({ at: n, message: Math.sin(n).toString(36).repeat(3) })

test('log records of 1 MiB arrive whole, compressed and without secrets', async () => {
  const lines = Array.from({ length: 10_000 }, (_, n) => record(n))
  const { read, parts } = connected({ lines: [...lines, 'secret'] })
  const answer = await read()
  expect(gunzipSync(answer!.content).toString()).toBe([...lines, '[removed]'].join('\n'))
  expect(answer!.cursor).toBe('run.1')
  expect(Math.max(...parts)).toBeLessThan(100_000)
})

test('on a line of 64 kbit/s a report of an order waits behind at most one small part, and half of the line is free', async () => {
  const lines = Array.from({ length: 6000 }, (_, n) => record(n))
  const { clock, up, read } = connected({ bytesPerMs: SLOW, lines })
  const waits: number[] = []
  const begunMs = clock.monotonic()
  await read(LOGS, () => {
    if (clock.monotonic() % 1000 >= 10) return
    const sentMs = clock.monotonic()
    up.send(300, () => waits.push(clock.monotonic() - sentMs))
  })
  const tookMs = clock.monotonic() - begunMs
  expect(waits.length).toBeGreaterThan(20)
  expect(Math.max(...waits)).toBeLessThan(600)
  expect(up.sent.busyMs / tookMs).toBeLessThan(0.65)
  expect(up.sent.bytes / tookMs).toBeGreaterThan(SLOW / 4)
})

test('an archive above 5 MiB is not sent', async () => {
  const { read, parts } = connected({ bundle: randomBytes(MAX_BUNDLE_BYTES + 1000) })
  expect(await read({ kind: 'bundle' })).toBeUndefined()
  expect(parts).toEqual([])
})

test('a hub that is silent for 30 seconds has not answered', async () => {
  const { clock, read, silence } = connected()
  silence()
  expect(await read()).toBeUndefined()
  expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000)
  expect(clock.monotonic()).toBeLessThan(31_000)
})

/** A hub that sends one byte of its answer 29 seconds after each request. */
function tricklingHub() {
  const clock = virtualClock()
  const diagnoses: Diagnoses = new Diagnoses({
    clock,
    listen: () => Promise.resolve(true),
    publish(hubId, { request, offset }) {
      const part = { request, offset, size: 500, data: Buffer.alloc(1).toString('base64') }
      clock.after(29_000, () => diagnoses.onPart(hubId, part))
      return true
    },
  })
  return { clock, diagnoses }
}

test('a hub that sends one byte every 29 seconds has not answered after the time limit', async () => {
  const { clock, diagnoses } = tricklingHub()
  const onPart = (): Promise<boolean> => Promise.resolve(true)
  const answer = diagnoses.read({ hubId: 1, request: uuid(1), wanted: LOGS, withinMs: 600_000, onPart })
  expect(await clock.settle(answer)).toBeUndefined()
  expect(clock.monotonic()).toBeGreaterThan(570_000)
  expect(clock.monotonic()).toBeLessThan(630_000)
})

test('a reading ends when its caller has gone', async () => {
  const { clock, diagnoses } = tricklingHub()
  const onPart = (): Promise<boolean> => Promise.resolve(false)
  const answer = diagnoses.read({ hubId: 1, request: uuid(1), wanted: LOGS, withinMs: 600_000, onPart })
  expect(await clock.settle(answer)).toBeUndefined()
  expect(clock.monotonic()).toBe(29_000)
})

test('a hub that restarts between two parts has not answered, because its parts would not fit', async () => {
  const { read, parts, restart } = connected({ lines: Array.from({ length: 5000 }, (_, n) => record(n)) })
  let hasRestarted = false
  const answer = await read(LOGS, () => {
    if (parts.length < 2 || hasRestarted) return
    hasRestarted = true
    restart()
  })
  expect(answer).toBeUndefined()
})

test('a process that stops ends its readings, so that another process takes them over', async () => {
  const { read, parts, diagnoses } = connected({ lines: Array.from({ length: 5000 }, (_, n) => record(n)) })
  const reading = read(LOGS, () => {
    if (parts.length === 2) diagnoses.stop()
  })
  await expect(reading).rejects.toThrow(Unavailable)
})
