import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { eraseSecrets } from '../../../edge/enrolment/erase.ts'
import { reportLeft } from '../../../edge/enrolment/farewell.ts'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { upTopic } from '../../../protocol/mqtt/topics.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { board } from './support/moving-board.ts'

const REFUSED = 'the broker refuses this user name or password (Not authorized)'

/** A board that has left hub 1, and the answers of the former broker to its visits: its reason to refuse, or undefined. */
function arrived() {
  const authority = makeAuthority({ fromDay: -1, toDay: 30 })
  onTestFinished(() => authority.remove())
  const { cert, key } = authority.issue('hub-1', 'DNS:hub-1', { fromDay: -1, toDay: 30 })
  const moving = board()
  const { paths, store, complete, log } = moving
  writeFileSync(paths.certificate, cert)
  writeFileSync(paths.key, key)
  complete()
  const visits: unknown[] = []
  let answer = (): string | undefined => 'it does not answer'
  let cloudTime: number | undefined
  const runtime = virtualRuntime()
  const start = () =>
    reportLeft(
      { store, log, runtime, ca: 'MQTT_CA', cloudTime: () => cloudTime },
      async ({ hubId, mqttUrl, key: used, ca }, _runtime, act) => {
        const reason = answer()
        let told: unknown
        if (reason === undefined)
          await act({
            publish(topic, payload) {
              told = [topic, payload]
              return Promise.resolve(true)
            },
            close() {},
          })
        visits.push([hubId, mqttUrl, used === key, ca, told])
        return reason
      },
    )
  return {
    ...moving,
    runtime,
    visits,
    answers: (...answers: (string | undefined)[]) => void (answer = () => answers.shift()),
    setCloudTime: (now: number) => void (cloudTime = now),
    start,
    isThere: () => existsSync(enrolmentFiles(store).former),
  }
}

service('openssl')(
  'a board that has left reports that to the former cell until that refuses its login, also if the broker there has taken the report, and erases that enrolment then',
  async () => {
    const { runtime, answers, visits, start, isThere } = arrived()
    expect(isThere()).toBe(true)
    answers('it does not answer', undefined, REFUSED)
    const reported = start()
    await runtime.clock.pass(600_000)
    await reported
    const visit = (told?: unknown) => [1, 'mqtts://c0.example:8883', true, 'MQTT_CA\nthe authority', told]
    expect(visits).toEqual([visit(), visit([upTopic(1, 'erased'), '{}']), visit()])
    expect(isThere()).toBe(false)
    await start()
    expect(visits).toHaveLength(3)
  },
)

service('openssl')(
  'a board ends its reports when the former broker refuses its certificate as revoked, and repeats them when that refuses it as expired',
  async () => {
    const { runtime, answers, visits, start, isThere } = arrived()
    const refuses = 'the broker refuses the client certificate: '
    answers(
      `${refuses}it has expired (ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED)`,
      `${refuses}it is revoked (ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED)`,
    )
    const reported = start()
    await runtime.clock.pass(600_000)
    await reported
    expect([visits.length, isThere()]).toEqual([2, false])
  },
)

service('openssl')(
  'the former enrolment is erased when the next cell has seen a day pass, over all starts and whatever the clock of the board shows, and with the secrets of the board',
  async () => {
    const { runtime, setCloudTime, visits, start, isThere } = arrived()
    void start()
    await runtime.clock.pass(3 * DAY_MS)
    expect([isThere(), visits.length > 10]).toEqual([true, true])
    runtime.clock.clear()
    setCloudTime(5 * DAY_MS)
    void start()
    await runtime.clock.pass(0)
    runtime.clock.clear()
    expect(isThere()).toBe(true)
    setCloudTime(6 * DAY_MS - 1)
    void start()
    await runtime.clock.pass(0)
    expect(isThere()).toBe(true)
    setCloudTime(6 * DAY_MS)
    await start()
    expect(isThere()).toBe(false)
    const revoked = arrived()
    eraseSecrets(revoked.store)
    expect(revoked.isThere()).toBe(false)
  },
)

test('the log reports a damaged former enrolment, which can report nothing and does not prevent the move', () => {
  const { complete, state, store, warnings } = board()
  complete()
  expect([state().hub, existsSync(enrolmentFiles(store).former)]).toEqual([100_000_001, false])
  expect(readFileSync(`${store}.former`).length).toBeGreaterThan(0)
  expect(warnings).toEqual(['the former cell may not learn that this board has left'])
})
