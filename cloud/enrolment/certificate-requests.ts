import type { HubDomain } from '../gateway/domain.ts'
import { background } from '../platform/work/background.ts'
import { renewCertificate, type EnrolmentOptions } from './enrol.ts'

type Asked = Parameters<HubDomain['certificateRequested']>

/**
 * Answers requests of hubs for certificates, only a few at once: hubs that return together, or learn a new authority, also ask
 * together, and their certificates must not delay sales. A hub has one place in the queue, with its latest request.
 */
export function certificateRequests(
  enrolment: Pick<EnrolmentOptions, 'brokerCa'>,
): Pick<HubDomain, 'certificateRequested'> {
  const waiting = new Map<number, Asked>()
  const inProgress = new Set<number>()
  function next(): void {
    const [first] = waiting.values()
    if (!first) return
    const [context, hubId, request, answer, canAnswer] = first
    // A hub that asks again gets no second certificate for a while: a lost answer would cost it the first.
    if (!canAnswer()) return waiting.clear()
    if (inProgress.size >= context.settings.hubCertificatesAtOnce) return
    waiting.delete(hubId)
    inProgress.add(hubId)
    background(context, 'certificate of a hub', async () => {
      try {
        const issued = await renewCertificate(context, enrolment, hubId, request)
        if (issued) answer(issued)
      } finally {
        inProgress.delete(hubId)
        next()
      }
    })
  }
  return {
    certificateRequested(...asked) {
      const [, hubId] = asked
      // Further requests wait for the hub's next attempt.
      if (inProgress.has(hubId)) return
      waiting.set(hubId, asked)
      next()
    },
  }
}
