import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { AcceptanceStepView } from '../../../protocol/model/acceptance.ts'
import { agreed, ahead, chainText, chosen, decide, lastOf } from './acceptance-store.ts'
import { act, running, state } from './store.ts'

/** The unsent remark for the current step. */
const remark = signal('')

/** A verdict was given: the keyboard focus moves to the next step's button. */
let wasDecided = false

/** The current step: its action, its expectation, the observation, and the technician's verdict. */
export function StepInHand({ step }: { step: AcceptanceStepView }): JSX.Element {
  const { acceptance } = state.value!
  const last = lastOf(step)
  const isRunning = acceptance.running?.step === step.id
  const isHindered = step.moves && acceptance.hindrance !== null
  const first = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    remark.value = ''
    // Keyboard users continue from the verdict to the next step. A page that was just opened must not move
    // the focus.
    if (wasDecided) first.current?.focus({ preventScroll: true })
    wasDecided = false
  }, [step.id])
  function carryOut(ids: readonly string[] = [step.id]): void {
    if (isHindered || acceptance.running !== null) return
    chosen.value = ids.length === 1 ? step.id : null
    void act(step.title, 'acceptance/step', { steps: ids }, 'quiet')
  }
  const chain = ahead.value.map(({ id }) => id)
  return (
    <section
      class="card bg-base-100 p-4 grid gap-3 min-w-0"
      aria-label="The step in hand"
      data-in-hand={step.id}
      data-attempts={step.attempts.length}
    >
      <h3 class="font-semibold text-lg">{step.title}</h3>
      <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1">
        <dt class="quiet">Do</dt>
        <dd>{step.does}</dd>
        <dt class="quiet">Expect</dt>
        <dd>{step.expected}</dd>
      </dl>
      {/* The button stays while the step runs, so that keyboard users keep their focus. */}
      <button
        ref={first}
        class={`btn aria-disabled:opacity-60 ${last ? '' : 'btn-primary'}`}
        aria-disabled={isHindered || acceptance.running !== null}
        aria-busy={isRunning}
        data-carry-out
        onClick={() => carryOut()}
      >
        {isRunning && <span class="loading loading-spinner loading-sm" aria-hidden="true" />}
        {last ? `Again: ${step.button.toLowerCase()}` : step.button}
      </button>
      {isRunning && (
        <div class="grid gap-2" data-running>
          <p role="status">
            The hub is at it.{' '}
            {acceptance.running!.seen.length > 0 && `It saw: ${acceptance.running!.seen.join(', ')}.`}{' '}
            {acceptance.running!.following > 0 && `${acceptance.running!.following} more follow.`}
          </p>
          <button
            class="btn btn-sm justify-self-start"
            onClick={() => void act('Stop waiting', 'acceptance/stop')}
          >
            Stop waiting
          </button>
        </div>
      )}
      {step.id.startsWith('row/') && <Bins />}
      {last && !isRunning && (
        <Verdict step={step} observed={last.observed} agrees={last.agrees} verdict={last.verdict} />
      )}
      {chain.length > 1 && !isRunning && (
        <button
          class="btn btn-primary h-auto py-2 aria-disabled:opacity-60"
          aria-disabled={isHindered || acceptance.running !== null}
          data-chain={chain.length}
          onClick={() => carryOut(chain)}
        >
          {chainText(step.id, chain.length)}
        </button>
      )}
      {agreed.value.length > 1 && acceptance.running === null && <VerdictOfAll />}
    </section>
  )
}

/** One verdict for all steps of a chain with the expected result. */
function VerdictOfAll(): JSX.Element {
  const steps = agreed.value
  return (
    <div class="grid gap-2 border-t border-base-300 pt-3" data-agreed={steps.length}>
      <p>
        <b>As expected: </b>
        {steps.map(({ title }) => title).join(', ')}. Did you see the same?
      </p>
      <button
        class="btn btn-success"
        onClick={() => {
          wasDecided = true
          void decide(
            steps.map(({ id }) => id),
            'passed',
            '',
          )
        }}
      >
        All {steps.length} passed
      </button>
    </div>
  )
}

interface VerdictProps {
  step: AcceptanceStepView
  observed: string
  agrees: boolean
  verdict: 'passed' | 'failed' | null
}

function Verdict({ step, observed, agrees, verdict }: VerdictProps): JSX.Element {
  function say(word: 'passed' | 'failed'): void {
    wasDecided = true
    void decide([step.id], word, remark.value)
  }
  const needsRemark = !agrees && remark.value.trim() === ''
  return (
    <div class="grid gap-2 border-t border-base-300 pt-3" data-observed>
      <p>
        <b>The hub saw: </b>
        {observed}
      </p>
      <p class={agrees ? '' : 'bad'}>
        {agrees
          ? 'The hub saw the expected result. Did you see the same?'
          : 'The hub did not see the expected result.'}
      </p>
      {verdict && <p class="text-sm">Your decision: {verdict}.</p>}
      <label class="grid gap-1 text-sm">
        Remark
        <textarea
          class="textarea w-full"
          rows={2}
          maxLength={500}
          value={remark.value}
          onInput={(event) => void (remark.value = event.currentTarget.value)}
        />
      </label>
      <div class="grid grid-cols-2 gap-2">
        <button class="btn btn-success" disabled={needsRemark} onClick={() => say('passed')}>
          Passed
        </button>
        <button class="btn btn-error" onClick={() => say('failed')}>
          Failed
        </button>
      </div>
      {needsRemark && <p class="quiet text-sm">To pass it anyway, state the reason in a remark.</p>}
    </div>
  )
}

/** Bins must be emptied between rows: rows need bins that are empty and closed. */
function Bins(): JSX.Element {
  const { bins } = state.value!.health
  const filled = bins.filter(({ occupied, door }) => occupied === true && door === 'closed')
  const opened = bins.filter(({ door }) => door === 'open')
  /** Stops at the first bin that does not move. */
  async function all(what: 'open' | 'close', which: typeof bins): Promise<void> {
    for (const { bin_number: bin } of which)
      if (!(await act(`Bin ${bin}: ${what}`, `bins/${bin}/${what}`, {}, 'quiet'))) return
  }
  return (
    <div class="grid grid-cols-2 gap-2" role="group" aria-label="Empty the bins">
      {filled.length > 0 && (
        <button class="btn col-span-2" onClick={() => void all('open', filled)}>
          Open all bins that hold something
        </button>
      )}
      {opened.length > 0 && (
        <button class="btn col-span-2" onClick={() => void all('close', opened)}>
          My hands are out: close all open bins
        </button>
      )}
      {bins.map(({ bin_number: bin, door, lift, occupied }) => {
        const what =
          door === 'closed' ? (lift === 'up' ? 'lower' : 'open') : ('close' as 'open' | 'close' | 'lower')
        const title = `Bin ${bin}: ${what}`
        return (
          <button
            key={bin}
            class="btn btn-sm"
            aria-busy={running.value.has(title)}
            onClick={() => void (running.value.has(title) || act(title, `bins/${bin}/${what}`))}
          >
            {title}
            <span class="quiet font-normal">{occupied ? 'holds something' : 'empty'}</span>
          </button>
        )
      })}
    </div>
  )
}
