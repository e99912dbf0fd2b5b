import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { eraseSecrets } from '../../../edge/enrolment/erase.ts'
import { reportLeft } from '../../../edge/enrolment/farewell.ts'
import { upTopic } from '../../../protocol/mqtt/topics.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { board, next } from './support/moving-board.ts'

/** A board that has left hub 1 after a power failure; `isReported`: the broker has got its report. */
function arrived({ isReported = false } = {}) {
  const authority = makeAuthority({ fromDay: -1, toDay: 30 })
  onTestFinished(() => authority.remove())
  const { cert, key } = authority.issue('hub-1', 'DNS:hub-1', { fromDay: -1, toDay: 30 })
  const moving = board()
  const { paths, store, complete, log } = moving
  writeFileSync(paths.certificate, cert)
  writeFileSync(paths.key, key)
  if (isReported) writeFileSync(paths.moving, JSON.stringify({ ...next, is_reported: true }))
  complete()
  const visits: unknown[] = []
  const answers: (string | undefined)[] = []
  const runtime = virtualRuntime()
  const report = () =>
    reportLeft({ store, log, runtime }, async ({ hubId, mqttUrl, key: used }, _runtime, act) => {
      const reason = answers.shift()
      let told: unknown
      if (reason === undefined)
        await act!({
          publish(topic, payload) {
            told = [topic, payload]
            return Promise.resolve(true)
          },
          close() {},
        })
      visits.push([hubId, mqttUrl, used === key, told])
      return reason
    })
  return {
    ...moving,
    runtime,
    visits,
    answers,
    report,
    isThere: () => existsSync(enrolmentFiles(store).former),
  }
}

service('openssl')(
  'a board that lost its power before its report reports to the former cell that it has left, until the broker there takes the report, and erases that enrolment then',
  async () => {
    const { runtime, answers, visits, report, isThere } = arrived()
    expect(isThere()).toBe(true)
    answers.push('it does not answer', 'it does not answer')
    const reported = report()
    await runtime.clock.pass(600_000)
    await reported
    const visit = (told?: unknown) => [1, 'mqtts://c0.example:8883', true, told]
    expect(visits).toEqual([visit(), visit(), visit([upTopic(1, 'erased'), '{}'])])
    expect(isThere()).toBe(false)
    await report()
    expect(visits).toHaveLength(3)
  },
)

service('openssl')('a former cell that refuses the board knows that it has left', async () => {
  const { answers, visits, report, isThere } = arrived()
  answers.push('the broker refuses this user name or password (Not authorized)')
  await report()
  expect([visits.length, isThere()]).toEqual([1, false])
})

service('openssl')(
  'the former enrolment is erased after a day without an answer, and with the secrets of the board',
  async () => {
    const { runtime, answers, report, isThere } = arrived()
    answers.push(...Array.from({ length: 100 }, () => 'it does not answer'))
    const reported = report()
    await runtime.clock.pass(86_400_000 * 2)
    await reported
    expect(isThere()).toBe(false)
    const revoked = arrived()
    eraseSecrets(revoked.store)
    expect(revoked.isThere()).toBe(false)
  },
)

service('openssl')(
  'a board with a report that the broker has got keeps nothing of the former cell',
  async () => {
    const { visits, report, isThere } = arrived({ isReported: true })
    expect(isThere()).toBe(false)
    await report()
    expect(visits).toEqual([])
  },
)

test('a damaged former enrolment reports nothing, and does not prevent the move', () => {
  const { complete, state, store } = board()
  complete()
  expect([state().hub, existsSync(enrolmentFiles(store).former)]).toEqual([100_000_001, false])
  expect(readFileSync(`${store}.former`).length).toBeGreaterThan(0)
})
