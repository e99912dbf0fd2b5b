import { erasing } from '../../../../edge/enrolment/erase.ts'
import { moving, type MoveState } from '../../../../edge/enrolment/moving.ts'
import type { OpenTransport, TransportHandlers } from '../../../../protocol/mqtt/transport.ts'
import { downTopic, upTopic } from '../../../../protocol/mqtt/topics.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { board } from './moving-board.ts'

/** Connections of hub 1 that obey orders of its cloud. `enrolments` answer in turn. */
export function connection(enrolments: (() => Promise<unknown>)[] = [], files = board({ isOrdered: false })) {
  const { store, read, paths, errors, details, log } = files
  const told: unknown[] = []
  const asked: unknown[] = []
  /** The certificates with which the hub has asked the next cell whether that takes it. */
  const questions: string[] = []
  const runtime = virtualRuntime()
  const state: MoveState = {}
  let answer = (): Promise<string | undefined> => Promise.resolve(undefined)
  let [restarts, why, breaks] = [0, undefined as string | undefined, false]
  let handlers: TransportHandlers | undefined
  const open: OpenTransport = (_options, given) => {
    handlers = given
    return {
      publish(topic, payload) {
        told.push([topic, JSON.parse(payload)])
        if (breaks) throw new Error('the connection is broken')
        return Promise.resolve(true)
      },
      close() {},
    }
  }
  const restart = (): void => void (restarts += 1)
  let now = 0
  const over = moving(
    {
      hubId: 1,
      store,
      log,
      state,
      reasonToStay: () => why,
      enrol(to) {
        asked.push(to)
        return enrolments.shift()!()
      },
    },
    erasing(
      {
        hubId: 1,
        store,
        log,
        restart,
        now: () => now,
        state,
        reasonToWait: () => why,
        runtime,
        ask({ answer: { certificate } }) {
          questions.push(certificate)
          return answer()
        },
      },
      open,
    ),
  )
  over({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
  const order = (channel: 'move' | 'erase', body: unknown): void =>
    handlers!.onMessage(downTopic(1, channel), JSON.stringify(body))
  return {
    told,
    asked,
    store,
    paths,
    runtime,
    questions,
    /** The next cell answers so from now on: a reason, or undefined if it takes the hub. */
    answersBy: (by: () => Promise<string | undefined>) => void (answer = by),
    errors,
    details,
    shown: () => state.waits,
    moving: () => read(paths.moving),
    setTime: (at: number) => void (now = at),
    breakLine: () => void (breaks = true),
    restarts: () => restarts,
    mustStay: (reason: string | undefined) => void (why = reason),
    move: (body: unknown) => order('move', body),
    erase: (body: unknown) => order('erase', body),
    isEnrolled: () => read(paths.enrolment) !== undefined,
    files: () => [read(paths.next) !== undefined, read(paths.moving) !== undefined],
  }
}

export const to = { order: 5, cloud: 'https://shop.example/c1', hub_id: 100_000_001, code: 'K7QM2XRA' }
/** The report of a retired hub that cannot leave: the order is known. */
export const waits = (error: string, as = to.hub_id) => [upTopic(1, 'moved'), { order: 0, hub_id: as, error }]
export const moved = (error?: string) => [
  upTopic(1, 'moved'),
  { order: to.order, hub_id: to.hub_id, ...(error !== undefined && { error }) },
]
