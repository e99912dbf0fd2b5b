import { rmSync } from 'node:fs'
import { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { backoffMs, sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { isLoginRefused } from '../../protocol/mqtt/connection-problem.ts'
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
})

/** About a day. */
const ATTEMPTS = 30
const PAUSE = { firstMs: 60_000, maxMs: 3_600_000 }

/** Stores the enrolment of the former hub for `reportLeft`. A damaged enrolment cannot report anything. */
export function keepForFarewell(store: string, hubId: number, log: Log): void {
  try {
    const own = readEnrolment(store)
    if (own?.hubId === hubId) replaceText(enrolmentFiles(store).former, JSON.stringify(own))
  } catch (error) {
    log.warn({ error: problemOf(error) }, 'the former cell may not learn that this board has left')
  }
}

/**
 * Reports to the former cell that this board has left it, if a power failure has prevented the report before the restart. Then, or
 * after a day, erases the former enrolment.
 */
export async function reportLeft(
  { store, runtime, log }: { store: string; runtime: Runtime; log: Log },
  visit = visitBroker,
): Promise<void> {
  const { former: path } = enrolmentFiles(store)
  const former = FormerEnrolment.safeParse(parseMessage(textIfThere(path) ?? '')).data
  if (former)
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const reason = await visit(former, runtime, (transport) =>
        transport.publish(upTopic(former.hubId, 'erased'), '{}'),
      )
      // The former cell refuses a board that it knows to have left.
      if (reason === undefined || isLoginRefused(reason)) break
      log.warn({ hub: former.hubId, reason }, 'the former cell does not know yet that this board has left')
      await sleep(runtime.clock, backoffMs(attempt, PAUSE, runtime.random))
    }
  rmSync(path, { force: true })
}
