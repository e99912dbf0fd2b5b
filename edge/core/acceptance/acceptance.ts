import { normalName } from '../../../protocol/model/name-text.ts'
import type {
  AcceptanceProtocol,
  AcceptanceState,
  StoredAcceptance,
} from '../../../protocol/model/acceptance.ts'
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

/**
 * The guided acceptance of the hub. The journal stores actions, observations and verdicts, so the hub may
 * restart between any two steps. Parts move only when the technician asks for it, one step at a time, while
 * the hub takes no orders.
 */
export class Acceptance implements HubAcceptance {
  readonly #context: () => Context
  /** In memory only: after a restart the hub does not continue a step that moves parts. */
  #run: StepRun | undefined
  /** Ids of the steps that start automatically, each after the hub saw the step before it succeed. */
  #following: string[] = []
  #revision = 0

  constructor(context: () => Context) {
    this.#context = context
  }

  begin(
    name: string,
    parts: readonly string[] | null,
    { by, withUnassignedRows = false }: Parameters<HubAcceptance['begin']>[2] = {},
  ): LocalOutcome {
    const context = this.#context()
    const known = new Set(stepsOf(context.hardware).map(({ part }) => part))
    const isOfParts = parts === null || (parts.length > 0 && parts.every((part) => known.has(part)))
    if (normalName(name) === '' || !isOfParts) return no('invalid')
    if (context.state.acceptances.open())
      return no('not_now', 'An acceptance is under way: go on with it, or end it.')
    const leftOut = withUnassignedRows ? [] : unassignedRows(context)
    return this.#changed(beginProtocol(context, { name: normalName(name), parts, leftOut }, by))
  }

  /** Starts a step, or several one after another. The protocol contains the result of each finished step. */
  beginSteps(ids: readonly string[], by?: LocalActor): LocalOutcome {
    const context = this.#context()
    const row = context.state.acceptances.open()
    const known = row ? stepsNow(context, row) : []
    const steps = ids.map((id) => known.find((one) => one.id === id))
    if (steps.length === 0 || steps.includes(undefined)) return no('not_found')
    if (this.#run) return no('not_now', 'Another step is being carried out.')
    const hindered = steps.some((step) => step!.moves) ? hindrance(context) : null
    if (hindered !== null) return no('not_now', hindered)
    this.#following = ids.slice(1)
    this.#start(steps[0]!, by)
    return done
  }

  /** Ends the running step and cancels the steps that would follow it. */
  stop(): LocalOutcome {
    if (!this.#run) return no('not_found')
    this.#following = []
    this.#run.stop()
    return done
  }

  /**
   * Stores the technician's verdict on the last attempt of each step. A pass that the hub did not observe
   * needs a remark.
   */
  decide(ids: readonly string[], verdict: 'passed' | 'failed', remark: string): LocalOutcome {
    const { state, handle } = this.#context()
    const row = state.acceptances.open()
    const attempts = row ? state.acceptances.attemptsOf(row.id) : []
    const last = ids.map((id) => attempts.findLast(({ step }) => step === id))
    if (last.length === 0 || last.includes(undefined)) return no('not_found')
    if (this.#run && ids.includes(this.#run.step.id)) return no('not_now', 'The step is being carried out.')
    if (verdict === 'passed' && remark.trim() === '' && last.some((attempt) => !attempt!.agrees))
      return no(
        'not_now',
        'The hub did not see what was expected: say in a remark why it is passed all the same.',
      )
    return this.#changed(
      handle(() => {
        for (const attempt of last) state.acceptances.decide(attempt!.number, verdict, remark.trim())
      }),
    )
  }

  /**
   * Ends the acceptance. The report is sent to the cloud once, through the ledger, as soon as the cloud is
   * connected.
   */
  end(by?: LocalActor): LocalOutcome {
    const row = this.#context().state.acceptances.open()
    if (!row) return no('not_found')
    if (this.#run) return no('not_now', 'A step is being carried out.')
    return this.#changed(endProtocol(this.#context(), row, by))
  }

  state(): AcceptanceState {
    const context = this.#context()
    const run = this.#run
    return {
      id: context.state.acceptances.open()?.id ?? null,
      revision: this.#revision,
      hindrance: hindrance(context),
      running: run
        ? {
            step: run.step.id,
            seen: run.seen.map(({ of, is }) => `${of}: ${is}`),
            following: this.#following.length,
          }
        : null,
    }
  }

  protocol(id?: string): AcceptanceProtocol | null {
    return protocolOf(this.#context(), id)
  }

  parts(): string[] {
    return [...new Set(stepsOf(this.#context().hardware).map(({ part }) => part))]
  }

  kept(): StoredAcceptance[] {
    return this.#context()
      .state.acceptances.list()
      .flatMap(({ id, by, begun_at, ended_at, result }) =>
        ended_at === null || result === null ? [] : [{ id, by, begun_at, ended_at, result }],
      )
  }

  /** Reads all sensors. Called after each event of the hub. */
  check(): void {
    this.#run?.check()
  }

  /** The hub shuts down: it does not wait for the running step. */
  leave(): void {
    this.#following = []
    this.#run?.leave()
    this.#run = undefined
  }

  #changed(isTaken: boolean): LocalOutcome {
    if (!isTaken) return no('unavailable')
    this.#revision++
    return done
  }

  /**
   * `pile`: the bin into which the previous row dropped its unit, and the number of units that the steps
   * dropped there.
   */
  #start(step: AcceptanceStep, by: LocalActor | undefined, pile?: Pile): void {
    const context = this.#context()
    const run = new StepRun(context, step, {
      by,
      pile,
      onSeen: () => this.#revision++,
      onEnd: (observation, nextPile) => {
        this.#run = undefined
        addAttempt(this.#context(), step, observation)
        this.#revision++
        this.#followOn(judge(step.check, observation).agrees, by, nextPile)
      },
    })
    this.#run = run
    this.#revision++
    run.start()
  }

  /** Starts the next step of a chain. The chain ends if the hub did not see the expected result of the step before. */
  #followOn(agrees: boolean, by: LocalActor | undefined, pile: Pile | undefined): void {
    const context = this.#context()
    const id = this.#following.shift()
    const row = context.state.acceptances.open()
    const step = row && stepsNow(context, row).find((one) => one.id === id)
    if (agrees && step && (!step.moves || hindrance(context) === null)) this.#start(step, by, pile)
    else this.#following = []
  }
}

/** Why no part may move for an acceptance now; null if parts may move. */
function hindrance({ state }: Context): string | null {
  if (!state.facts.get('held').orders) return 'The hub takes orders: stop them first.'
  return state.orders.unfinished().length > 0 ? 'An order is under way: let it end first.' : null
}
