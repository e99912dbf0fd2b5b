import { rmSync } from 'node:fs'
import { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { backoffMs, sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { DAY_MS } from '../../protocol/model/times.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { isCertificateRevoked, isLoginRefused } from '../../protocol/mqtt/connection-problem.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { upTopic } from '../../protocol/mqtt/topics.ts'
import { textIfThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, readEnrolment } from './enrolment.ts'
import { visitBroker } from './visit-broker.ts'

const FormerEnrolment = z.object({
  hubId: z.int().min(1),
  mqttUrl: z.string(),
  cert: z.string(),
  key: z.string(),
  ca: z.string(),
  /** Time of the next cell at the first visit after which it was known. */
  since: z.int().optional(),
})

const PAUSE = { firstMs: 5_000, maxMs: 3_600_000 }

/** Stores the enrolment of the former hub for `reportLeft`. A damaged enrolment cannot report anything. */
export function keepForFarewell(store: string, hubId: number, log: Log): void {
  try {
    const own = readEnrolment(store)
    if (own?.hubId === hubId) replaceText(enrolmentFiles(store).former, JSON.stringify(own))
  } catch (error) {
    log.warn({ error: problemOf(error) }, 'the former cell may not learn that this board has left')
  }
}

export interface FarewellOptions {
  store: string
  runtime: Runtime
  log: Log
  /** PEM of authorities that the hub trusts beside those of the former cell. */
  ca: string | undefined
  /** The time of the next cell; undefined until the hub has been connected there. The clock of the board may be wrong. */
  cloudTime: () => number | undefined
}

/**
 * Reports to the former cell that this board has left it, until that cell refuses it, or for a day. Then erases the former
 * enrolment. A broker that has taken the report may lose it.
 */
export async function reportLeft(
  { store, runtime, log, ca, cloudTime }: FarewellOptions,
  visit = visitBroker,
): Promise<void> {
  const { former: path } = enrolmentFiles(store)
  const former = FormerEnrolment.safeParse(parseMessage(textIfThere(path) ?? '')).data
  if (former)
    for (let attempt = 0; ; attempt += 1) {
      const trusted = ca === undefined ? former.ca : `${ca}\n${former.ca}`
      const reason = await visit({ ...former, ca: trusted }, runtime, (transport) =>
        transport.publish(upTopic(former.hubId, 'erased'), '{}'),
      )
      // The former cell refuses a board that it knows to have left.
      if (reason !== undefined && (isLoginRefused(reason) || isCertificateRevoked(reason))) break
      if (reason !== undefined)
        log.warn({ hub: former.hubId, reason }, 'the former cell does not know yet that this board has left')
      const now = cloudTime()
      if (now !== undefined && former.since === undefined) {
        former.since = Math.floor(now)
        replaceText(path, JSON.stringify(former))
      }
      if (now !== undefined && now - former.since! >= DAY_MS) break
      await sleep(runtime.clock, backoffMs(attempt, PAUSE, runtime.random))
    }
  rmSync(path, { force: true })
}
