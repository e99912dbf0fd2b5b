import { normalName } from '../../../protocol/model/name-text.ts'
import type { AcceptanceState } from '../../../protocol/model/acceptance.ts'
import type { LocalActor } from '../../../protocol/mqtt/hub-entries.ts'
import type { Context } from '../context.ts'
import type { HubAcceptance, LocalOutcome, LocalRefusal } from '../hub-core.ts'
import { judge } from './observation.ts'
import { addAttempt, beginProtocol, endProtocol, protocolOf, stepsNow, unassignedRows } from './protocol.ts'
import { type Pile, StepRun } from './step-run.ts'
import { type AcceptanceStep, stepsOf } from './steps.ts'

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
  /** Steps that follow by themselves, each after one that the hub saw as expected. */
  let following: string[] = []
  let revision = 0

  function changed(isTaken: boolean): LocalOutcome {
    if (!isTaken) return no('unavailable')
    revision++
    return done
  }

  const begin: Acceptance['begin'] = (name, parts, { by, withUnassignedRows = false } = {}) => {
    const { state, hardware } = context()
    const known = new Set(stepsOf(hardware).map(({ part }) => part))
    if (
      normalName(name) === '' ||
      (parts !== null && (parts.length === 0 || parts.some((part) => !known.has(part))))
    )
      return no('invalid')
    if (state.acceptances.open())
      return no('not_now', 'An acceptance is under way: go on with it, or end it.')
    const leftOut = withUnassignedRows ? [] : unassignedRows(context())
    return changed(beginProtocol(context(), { name: normalName(name), parts, leftOut }, by))
  }

  /** Begins a step, or several one after another. The protocol has the result of each when it is over. */
  function beginSteps(ids: readonly string[], by?: LocalActor): LocalOutcome {
    const row = context().state.acceptances.open()
    const known = row ? stepsNow(context(), row) : []
    const steps = ids.map((id) => known.find((one) => one.id === id))
    if (steps.length === 0 || steps.includes(undefined)) return no('not_found')
    if (run) return no('not_now', 'Another step is being carried out.')
    const hindered = steps.some((step) => step!.moves) ? hindrance(context()) : null
    if (hindered !== null) return no('not_now', hindered)
    following = ids.slice(1)
    start(steps[0]!, by)
    return done
  }

  /** `pile`: the bin into which the row before dropped its unit, and how many units the steps have dropped there. */
  function start(step: AcceptanceStep, by: LocalActor | undefined, pile?: Pile): void {
    run = new StepRun(context(), step, {
      by,
      pile,
      onSeen: () => revision++,
      onEnd(observation, nextPile) {
        run = undefined
        addAttempt(context(), step, observation)
        revision++
        followOn(judge(step.check, observation).agrees, by, nextPile)
      },
    })
    revision++
    run.start()
  }

  /** Begins the next step of a chain. A step that the hub did not see as expected ends the chain. */
  function followOn(agrees: boolean, by: LocalActor | undefined, pile: Pile | undefined): void {
    const id = following.shift()
    const row = context().state.acceptances.open()
    const step = row && stepsNow(context(), row).find((one) => one.id === id)
    if (agrees && step && (!step.moves || hindrance(context()) === null)) start(step, by, pile)
    else following = []
  }

  /** Ends the step that is carried out, and the steps that would follow it. */
  function stop(): LocalOutcome {
    if (!run) return no('not_found')
    following = []
    run.stop()
    return done
  }

  /** The technician's verdict on the last attempt of each step. A pass that the hub did not see needs a remark. */
  function decide(ids: readonly string[], verdict: 'passed' | 'failed', remark: string): LocalOutcome {
    const { state, handle } = context()
    const row = state.acceptances.open()
    const attempts = row ? state.acceptances.attemptsOf(row.id) : []
    const last = ids.map((id) => attempts.findLast(({ step }) => step === id))
    if (last.length === 0 || last.includes(undefined)) return no('not_found')
    if (run && ids.includes(run.step.id)) return no('not_now', 'The step is being carried out.')
    if (verdict === 'passed' && remark.trim() === '' && last.some((attempt) => !attempt!.agrees))
      return no(
        'not_now',
        'The hub did not see what was expected: say in a remark why it is passed all the same.',
      )
    return changed(
      handle(() => {
        for (const attempt of last) state.acceptances.decide(attempt!.number, verdict, remark.trim())
      }),
    )
  }

  /** Ends it: the report goes to the cloud with everything else, once, whenever the cloud is there. */
  function end(by?: LocalActor): LocalOutcome {
    const row = context().state.acceptances.open()
    if (!row) return no('not_found')
    if (run) return no('not_now', 'A step is being carried out.')
    return changed(endProtocol(context(), row, by))
  }

  function state(): AcceptanceState {
    const row = context().state.acceptances.open()
    return {
      id: row?.id ?? null,
      revision,
      hindrance: hindrance(context()),
      running: run
        ? {
            step: run.step.id,
            seen: run.seen.map(({ of, is }) => `${of}: ${is}`),
            following: following.length,
          }
        : null,
    }
  }

  return {
    begin,
    beginSteps,
    stop,
    decide,
    end,
    state,
    protocol: (id) => protocolOf(context(), id),
    look: () => run?.look(),
    parts: () => [...new Set(stepsOf(context().hardware).map(({ part }) => part))],
    kept: () =>
      context()
        .state.acceptances.list()
        .flatMap(({ id, by, begun_at, ended_at, result }) =>
          ended_at === null || result === null ? [] : [{ id, by, begun_at, ended_at, result }],
        ),
    leave() {
      following = []
      run?.leave()
      run = undefined
    },
  }
}

/** Why nothing may move for an acceptance now. */
function hindrance({ state }: Context): string | null {
  if (!state.facts.get('held').orders) return 'The hub takes orders: stop them first.'
  return state.orders.unfinished().length > 0 ? 'An order is under way: let it end first.' : null
}
