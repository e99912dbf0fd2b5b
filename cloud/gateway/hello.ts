import type { Hello, Welcome } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import { adoptOutbox } from './adopt-outbox.ts'
import { adoptLedger, adoptTelemetry } from './adopt-streams.ts'
import type { HubDomain } from './domain.ts'
import { readSession, takeByHello, type LeaseHolder } from './leases.ts'
import { buildSnapshot } from './snapshot.ts'

export interface Greeting {
  context: CloudContext
  domain: HubDomain
  holder: LeaseHolder
}

/**
 * Answers a hello: session, lease, both streams and the outbox in one transaction (SPEC §4). `undefined` where another
 * process speaks to the hub, or there is no such hub.
 */
export async function greet(
  { context, domain, holder }: Greeting,
  hubId: number,
  hello: Hello,
): Promise<Welcome | undefined> {
  const { clock, random } = context.runtime
  return context.db.transact(async (tx) => {
    const now = clock.now()
    const hub = await tx.q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
    if (!hub) return undefined
    const isRepeated = (await readSession(tx.q, hubId)) === hello.session
    if (!(await takeByHello(tx.q, holder, hubId, hello, now))) return undefined
    const ledger = await adoptLedger(tx, hubId, hello.ledger, now)
    const telemetry = await adoptTelemetry(tx, hubId, hello.telemetry, now)
    const outbox = await adoptOutbox(tx, hubId, hello.inbox, {
      isRepeated,
      random,
      snapshot: () => buildSnapshot(tx, context, domain, hubId),
    })
    return {
      protocol: hello.protocol,
      session: hello.session,
      answers: hello.clock.monotonic,
      ledger,
      telemetry,
      outbox,
      clock: { wall: now },
    }
  })
}
