import type { AcceptanceState } from '../../../protocol/model/acceptance.ts'
import type { Context } from '../context.ts'
import type { HubAcceptance, LocalOutcome, LocalRefusal } from '../hub-core.ts'
import { addAttempt, beginProtocol, endProtocol, protocolOf, stepsNow } from './protocol.ts'
import { StepRun } from './step-run.ts'
import { stepsOf } from './steps.ts'

const no = (reason: LocalRefusal, why?: string): LocalOutcome => ({
  ok: false,
  reason,
  ...(why !== undefined && { why }),
})
const done: LocalOutcome = { ok: true }

export interface Acceptance extends HubAcceptance {
  /** Looks at all sensors. Called after each event of the hub. */
  look(): void
  /** The hub ends: what is being carried out is not waited for. */
  leave(): void
}

/**
 * The guided acceptance of the hub. What was done, seen and decided is in the journal; the hub may be restarted between any
 * two steps. Nothing moves but what the technician has asked for, one step at a time, while no orders are taken.
 */
export function createAcceptance(context: () => Context): Acceptance {
  /** A hub that was away does not take up again what moves. */
  let run: StepRun | undefined
  let revision = 0

  function changed(isTaken: boolean): LocalOutcome {
    if (!isTaken) return no('unavailable')
    revision++
    return done
  }

  function begin(by: string, parts: readonly string[] | null): LocalOutcome {
    const { journal, hardware } = context()
    const name = by.trim()
    const known = new Set(stepsOf(hardware).map(({ part }) => part))
    if (name === '' || (parts !== null && (parts.length === 0 || parts.some((part) => !known.has(part)))))
      return no('invalid')
    if (journal.acceptances.open())
      return no('not_now', 'An acceptance is under way: go on with it, or end it.')
    return changed(beginProtocol(context(), name, parts))
  }

  /** Begins a step. What comes of it is in the protocol when it is over. */
  function beginStep(stepId: string): LocalOutcome {
    const row = context().journal.acceptances.open()
    const step = row && stepsNow(context(), row).find(({ id }) => id === stepId)
    if (!step) return no('not_found')
    if (run) return no('not_now', 'Another step is being carried out.')
    const hindered = step.moves ? hindrance(context()) : null
    if (hindered !== null) return no('not_now', hindered)
    run = new StepRun(context(), step, {
      onSeen: () => revision++,
      onEnd(observation) {
        run = undefined
        addAttempt(context(), step, observation)
        revision++
      },
    })
    revision++
    run.start()
    return done
  }

  function stop(): LocalOutcome {
    if (!run) return no('not_found')
    run.stop()
    return done
  }

  /** The technician's word on the last attempt of a step. What the hub saw otherwise needs a remark to be passed. */
  function decide(stepId: string, verdict: 'passed' | 'failed', remark: string): LocalOutcome {
    const { journal, handle } = context()
    const row = journal.acceptances.open()
    const last = row && journal.acceptances.attempts(row.id).findLast(({ step }) => step === stepId)
    if (!last) return no('not_found')
    if (run?.step.id === stepId) return no('not_now', 'The step is being carried out.')
    if (verdict === 'passed' && last.agrees === 0 && remark.trim() === '')
      return no(
        'not_now',
        'The hub did not see what was expected: say in a remark why it is passed all the same.',
      )
    return changed(handle(() => journal.acceptances.decide(verdict, remark.trim(), last.number)))
  }

  /** Ends it: the report goes to the cloud with everything else, once, whenever the cloud is there. */
  function end(): LocalOutcome {
    const row = context().journal.acceptances.open()
    if (!row) return no('not_found')
    if (run) return no('not_now', 'A step is being carried out.')
    return changed(endProtocol(context(), row))
  }

  function state(): AcceptanceState {
    const row = context().journal.acceptances.open()
    return {
      id: row?.id ?? null,
      revision,
      hindrance: hindrance(context()),
      running: run ? { step: run.step.id, seen: run.seen.map(({ of, is }) => `${of}: ${is}`) } : null,
    }
  }

  return {
    begin,
    beginStep,
    stop,
    decide,
    end,
    state,
    protocol: (id) => protocolOf(context(), id),
    look: () => run?.look(),
    parts: () => [...new Set(stepsOf(context().hardware).map(({ part }) => part))],
    kept: () =>
      context()
        .journal.acceptances.list()
        .flatMap(({ id, by, begun_at, ended_at, result }) =>
          ended_at === null || result === null ? [] : [{ id, by, begun_at, ended_at, result }],
        ),
    leave() {
      run?.leave()
      run = undefined
    },
  }
}

/** Why nothing may move for an acceptance now. */
function hindrance({ journal }: Context): string | null {
  if (!journal.meta.held().orders) return 'The hub takes orders: stop them first.'
  return journal.orders.unfinished().length > 0 ? 'An order is under way: let it end first.' : null
}
