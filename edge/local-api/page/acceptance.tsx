import { signal } from '@preact/signals'
import { ArrowLeft, Printer } from 'lucide'
import type { JSX } from 'preact'
import type { AcceptanceStepView, AcceptanceProtocol } from '../../../protocol/model/acceptance.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { StepInHand } from './acceptance-step.tsx'
import {
  begin,
  chosen,
  current,
  isKnown,
  kept,
  parts,
  read,
  shown,
  step,
  verdictOf,
} from './acceptance-store.ts'
import { act, state, hardware, person } from './store.ts'

/** The guided acceptance of this hub: start, steps, end, and its protocols for printing. */
export function AcceptanceView(): JSX.Element {
  return (
    <div class="grid gap-3">
      <a href="#" class="btn btn-ghost btn-sm justify-self-start print:hidden">
        <Icon icon={ArrowLeft} /> The hub
      </a>
      {!isKnown.value ? (
        <p class="quiet">The hub answers …</p>
      ) : current.value ? (
        <UnderWay />
      ) : (
        <NoneUnderWay />
      )}
    </div>
  )
}

/** Nothing moves while orders are taken: shows it, and offers to stop orders. */
function OrdersStopped(): JSX.Element {
  const { acceptance, held } = state.value!
  if (acceptance.hindrance === null)
    return <p class="quiet text-sm print:hidden">No orders are taken. Nothing moves but what you ask for.</p>
  return (
    <div class="alert alert-warning alert-soft flex flex-wrap text-base-content print:hidden" data-hindrance>
      <span class="grow">{acceptance.hindrance} Until then only steps without a motion can be tested.</span>
      {!held.orders && (
        <HoldButton
          class="btn-sm btn-warning"
          onHeld={() => void act('Stop orders', 'hold/orders', { held: true })}
        >
          Stop orders
        </HoldButton>
      )}
    </div>
  )
}

function Begin(): JSX.Element {
  return (
    <form
      class="card bg-base-100 p-4 grid gap-3"
      aria-label="Begin an acceptance"
      onSubmit={(event) => {
        const data = new FormData(event.currentTarget)
        const by = (textsOf(event)['by'] ?? '').trim()
        void begin(by, data.getAll('part').map(String), data.has('unassigned'))
      }}
    >
      <h2 class="text-lg font-semibold">Accept this hub</h2>
      <p>
        The hub tries every controller, door, lock, sensor, fridge, bin, lift and row, one step at a time. It
        shows the readings of its sensors. You decide whether the step passed. You can leave at any time and
        continue later.
      </p>
      <label class="grid gap-1 text-sm">
        Your name, for the report
        <input
          name="by"
          class="input w-full"
          autocomplete="name"
          maxLength={200}
          defaultValue={person.value ?? ''}
          required
        />
      </label>
      <details class="collapse collapse-arrow border border-base-300">
        <summary class="collapse-title font-medium py-3 min-h-0">Of some parts only</summary>
        <div class="collapse-content grid grid-cols-[repeat(auto-fill,minmax(10rem,1fr))] gap-1">
          {parts.value.map((part) => (
            <label key={part} class="flex items-center gap-2 min-h-11">
              <input type="checkbox" class="checkbox checkbox-sm" name="part" value={part} /> {part}
            </label>
          ))}
        </div>
      </details>
      <label class="flex items-center gap-2 min-h-11">
        <input type="checkbox" class="checkbox checkbox-sm" name="unassigned" /> Rows without a product, too
      </label>
      <button class="btn btn-primary justify-self-start">Start</button>
    </form>
  )
}

function NoneUnderWay(): JSX.Element {
  const held = state.value!.held.orders
  return (
    <>
      {held && (
        <div class="alert alert-info alert-soft flex flex-wrap text-base-content print:hidden">
          <span class="grow">The hub takes no orders: a person has stopped them here.</span>
          <button
            class="btn btn-sm"
            onClick={() => void act('Resume orders', 'hold/orders', { held: false })}
          >
            Resume orders
          </button>
        </div>
      )}
      <div class="print:hidden">
        <Begin />
      </div>
      {shown.value && (
        <section class="card bg-base-100 p-4 grid gap-3 min-w-0" aria-label="Protocol">
          <PrintButton />
          <Protocol protocol={shown.value} />
        </section>
      )}
      {kept.value.length > 1 && (
        <section class="card bg-base-100 p-4 print:hidden" aria-label="Earlier protocols">
          <h2 class="font-semibold">Earlier protocols</h2>
          <ul class="grid gap-1">
            {kept.value.map(({ id, by, ended_at, result }) => (
              <li key={id}>
                <button class="link text-left touch" onClick={() => void read(id)}>
                  {new Date(ended_at).toLocaleString()}, {by}: {resultWords[result]}
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

const PrintButton = (): JSX.Element => (
  <button class="btn btn-sm justify-self-start print:hidden" onClick={() => window.print()}>
    <Icon icon={Printer} /> Print it
  </button>
)

const marks = { passed: '✓', failed: '✕', none: '·' } as const
const colours = { passed: 'text-success', failed: 'text-error font-bold', none: 'quiet' } as const

function StepList({ steps }: { steps: readonly AcceptanceStepView[] }): JSX.Element {
  const names = [...new Set(steps.map(({ part }) => part))]
  const inHand = step.value
  return (
    <section class="card bg-base-100 p-3 min-w-0 print:hidden" aria-label="Steps">
      <ul class="grid gap-1">
        {names.map((part) => {
          const own = steps.filter((one) => one.part === part)
          const count = (verdict: string) => own.filter((one) => verdictOf(one) === verdict).length
          return (
            <li key={part}>
              <details class="collapse collapse-arrow border border-base-300" open={inHand?.part === part}>
                <summary class="collapse-title font-medium py-2 min-h-0 pr-10" data-part={part}>
                  {part[0]!.toUpperCase() + part.slice(1)}{' '}
                  <span class={count('failed') > 0 ? 'bad text-sm' : 'quiet text-sm'}>
                    {count('passed')} of {own.length} passed
                    {count('failed') > 0 && `, ${count('failed')} failed`}
                  </span>
                </summary>
                <ul class="collapse-content px-2">
                  {own.map((one) => {
                    const verdict = verdictOf(one) ?? 'none'
                    return (
                      <li key={one.id}>
                        <button
                          class={`btn btn-ghost justify-start h-auto min-h-11 py-1 w-full text-left font-normal ${one.id === inHand?.id ? 'bg-base-200' : ''}`}
                          aria-current={one.id === inHand?.id ? 'step' : undefined}
                          data-step={one.id}
                          data-verdict={verdict}
                          onClick={() => void (chosen.value = one.id)}
                        >
                          <span class={colours[verdict]} aria-hidden="true">
                            {marks[verdict]}
                          </span>
                          <span>
                            {one.title}
                            <span class="sr-only">, {verdict === 'none' ? 'not done' : verdict}</span>
                          </span>
                        </button>
                      </li>
                    )
                  })}
                </ul>
              </details>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

/** Whether the page asks the technician to confirm an end before all steps are done. */
const isEnding = signal(false)

function End({ steps }: { steps: readonly AcceptanceStepView[] }): JSX.Element {
  const left = steps.filter((one) => verdictOf(one) === null).length
  const failed = steps.filter((one) => verdictOf(one) === 'failed').length
  const end = (): void => {
    isEnding.value = false
    void act('End the acceptance', 'acceptance/end')
  }
  if (isEnding.value)
    return (
      <div
        class="alert alert-warning alert-soft flex flex-wrap text-base-content"
        role="alertdialog"
        aria-label="End it"
      >
        <span class="grow">
          {left} steps have no verdict, {failed} have failed. The report will say so.
        </span>
        <button class="btn btn-sm btn-warning" onClick={end}>
          End anyway
        </button>
        <button class="btn btn-sm" onClick={() => void (isEnding.value = false)}>
          Continue
        </button>
      </div>
    )
  return (
    <button
      class={`btn ${left === 0 ? 'btn-primary' : ''}`}
      onClick={() => (left + failed === 0 ? end() : void (isEnding.value = true))}
    >
      End the acceptance
    </button>
  )
}

function UnderWay(): JSX.Element {
  const { steps, by, left_out: leftOut } = current.value!
  const count = (verdict: string) => steps.filter((one) => verdictOf(one) === verdict).length
  const done = count('passed') + count('failed')
  return (
    <>
      <div class="grid gap-1 print:hidden" data-progress={`${done}/${steps.length}`}>
        <h2 class="text-lg font-semibold">Acceptance by {by}</h2>
        <progress
          class="progress progress-primary w-full"
          value={done}
          max={steps.length}
          aria-label="Steps with a verdict"
        />
        <p class="text-sm" aria-live="polite">
          {done} of {steps.length} steps: {count('passed')} passed, {count('failed')} failed.
          {leftOut > 0 && ` ${leftOut} rows without a product are left out.`}
        </p>
      </div>
      <OrdersStopped />
      <div class="grid gap-3 lg:grid-cols-[26rem_minmax(0,1fr)] items-start">
        <div class="grid gap-3 lg:sticky lg:top-3 print:hidden">
          {step.value && <StepInHand key={step.value.id} step={step.value} />}
          <End steps={steps} />
        </div>
        <StepList steps={steps} />
      </div>
      <div class="hidden print:block">
        <Protocol protocol={current.value!} />
      </div>
    </>
  )
}

const resultWords = {
  passed: 'passed',
  failed: 'failed',
  incomplete: 'passed as far as it was done',
} as const

const at = (instant: number): string => new Date(instant).toLocaleString()

/** The protocol of an acceptance in its printed form. */
function Protocol({ protocol }: { protocol: AcceptanceProtocol }): JSX.Element {
  const { by, begun_at, ended_at, software, firmware, result, steps, left_out: leftOut } = protocol
  return (
    <div class="grid gap-3 min-w-0" data-protocol={protocol.id}>
      <h2 class="text-lg font-semibold">
        Acceptance of hub {hardware.value?.hubId}: {result === null ? 'in progress' : resultWords[result]}
      </h2>
      <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3">
        <dt class="quiet">By</dt>
        <dd>{by}</dd>
        <dt class="quiet">From</dt>
        <dd>{at(begun_at)}</dd>
        <dt class="quiet">To</dt>
        <dd>{ended_at === null ? '–' : at(ended_at)}</dd>
        <dt class="quiet">Software</dt>
        <dd>{software}</dd>
        <dt class="quiet">Firmware</dt>
        <dd class="break-words">
          {firmware.map((one) => `${one.controller} ${one.firmware ?? 'unknown'}`).join(', ')}
        </dd>
      </dl>
      {leftOut > 0 && <p>{leftOut} rows without a product were left out.</p>}
      <ol class="protocol grid gap-2">
        {steps.map((step) => (
          <li key={step.id} class="border-t border-base-300 pt-2 text-sm break-inside-avoid">
            <h3 class="font-semibold">{step.title}</h3>
            <p>
              <span class="quiet">Expected:</span> {step.expected}
            </p>
            {step.attempts.length === 0 && <p class="quiet">Not done.</p>}
            {step.attempts.map(({ observed, verdict, remark, at: instant }, index) => (
              <p key={index}>
                <b class={verdict === 'failed' ? 'bad' : ''}>{verdict ?? 'no verdict'}</b>{' '}
                <span class="quiet">{at(instant)}</span> {observed}
                {remark !== '' && <i> Remark: {remark}</i>}
              </p>
            ))}
          </li>
        ))}
      </ol>
      <p class="hidden print:block mt-8">Signature: ________________________________</p>
    </div>
  )
}
