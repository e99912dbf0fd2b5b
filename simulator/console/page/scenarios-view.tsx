import { signal } from '@preact/signals'
import { Circle, CircleCheck, CircleDot, CircleX, Pencil, Play, Save, Square } from 'lucide'
import type { JSX } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call } from '../../../protocol/ui/call-program.ts'
import { attempt } from '../../../protocol/ui/notices.tsx'
import type { Listed, Run, StepResult } from '../../scenarios/results.ts'
import { hubId, recording, runs, state } from './store.ts'

const listed = signal<readonly Listed[]>([])
const chosen = signal<string | null>(null)
/** The text in the editor; for a scenario of the library it is a copy. */
const draft = signal<{ name: string; text: string } | null>(null)

async function renew(): Promise<void> {
  listed.value = await call<Listed[]>('GET', 'api/scenarios')
}
void renew().catch(() => {})

const run = (about: object): Promise<Run> => call<Run>('POST', 'api/runs', { hub_id: hubId.value, ...about })
const step = (what: object): Promise<unknown> =>
  call('POST', 'api/steps', { hub_id: hubId.value, step: what })

/** Scenarios: select, run and watch them; record, edit and save your own. */
export function ScenariosView(): JSX.Element {
  const current = listed.value.find(({ name }) => name === chosen.value)
  return (
    <div class="grid gap-6 lg:grid-cols-[minmax(0,1fr)_minmax(0,1.2fr)]">
      <div class="grid gap-4 content-start min-w-0">
        <Recording />
        <Customer />
        <div>
          <h2 class="font-semibold mb-1">Scenarios</h2>
          <ul class="max-h-96 overflow-y-auto" data-scenarios tabIndex={0} aria-label="Scenarios">
            {listed.value.map(({ name, source, problems }) => (
              <li key={name}>
                <button
                  class={`btn btn-sm btn-ghost justify-start w-full ${name === chosen.value ? 'btn-active' : ''}`}
                  aria-current={name === chosen.value}
                  onClick={() => void (chosen.value = name)}
                >
                  {name.replaceAll('-', ' ')}
                  {source === 'own' && <span class="badge badge-sm">yours</span>}
                  {problems && <span class="badge badge-sm badge-error">cannot be run</span>}
                </button>
              </li>
            ))}
          </ul>
        </div>
      </div>
      <div class="grid gap-4 content-start min-w-0">
        {draft.value ? <Editor key={draft.value.name} /> : current && <Chosen scenario={current} />}
        <Runs />
      </div>
    </div>
  )
}

function Chosen({ scenario }: { scenario: Listed }): JSX.Element {
  const { name, description, parameters, problems } = scenario
  function start(event: SubmitEvent): void {
    const given = Object.entries(textsOf(event)).map(([key, text]) => [
      key,
      typeof parameters[key] === 'number' ? Number(text) : text,
    ])
    void attempt(`Start ${name}`, () => run({ name, parameters: Object.fromEntries(given) }))
  }
  async function edit(): Promise<void> {
    draft.value = await call<{ name: string; text: string }>('GET', `api/scenarios/${name}`)
  }
  return (
    <form class="grid gap-2" onSubmit={start} key={name} data-chosen={name}>
      <h2 class="font-semibold">{name.replaceAll('-', ' ')}</h2>
      <p class="whitespace-pre-line text-sm">{description.trim()}</p>
      {problems?.map((problem) => (
        <p key={problem} class="text-error text-sm">
          {problem}
        </p>
      ))}
      <div class="flex flex-wrap gap-2">
        {Object.entries(parameters).map(([key, value]) => (
          <label key={key} class="grid gap-1 text-sm">
            {key.replaceAll('_', ' ')}
            <input name={key} defaultValue={String(value)} class="input input-sm w-32" required />
          </label>
        ))}
      </div>
      <div class="flex gap-2">
        <button class="btn btn-sm btn-primary" disabled={problems !== undefined}>
          <Icon icon={Play} /> Run it
        </button>
        <button type="button" class="btn btn-sm" onClick={() => void attempt(`Open ${name}`, edit)}>
          <Icon icon={Pencil} /> Its text
        </button>
      </div>
    </form>
  )
}

function Editor(): JSX.Element {
  const { name, text } = draft.value!
  const change = (value: string): void =>
    void (draft.value = { name: /^name: *(\S+)/m.exec(value)?.[1] ?? name, text: value })
  async function save(): Promise<void> {
    const now = draft.value!
    await call('PUT', `api/scenarios/${now.name}`, { text: now.text })
    chosen.value = now.name
    draft.value = null
    await renew()
  }
  return (
    <div class="grid gap-2" data-editor>
      <label class="grid gap-1 text-sm">
        The scenario; under its name it is kept
        <textarea
          class="textarea w-full font-mono text-xs h-96"
          spellcheck={false}
          defaultValue={text}
          onInput={(event) => change(event.currentTarget.value)}
        />
      </label>
      <div class="flex gap-2">
        <button class="btn btn-sm btn-primary" onClick={() => void attempt('Save the scenario', save)}>
          <Icon icon={Save} /> Save
        </button>
        <button
          class="btn btn-sm"
          onClick={() => void attempt('Start it', () => run({ text: draft.value!.text }))}
        >
          <Icon icon={Play} /> Try it
        </button>
        <button class="btn btn-sm" onClick={() => void (draft.value = null)}>
          Discard
        </button>
      </div>
    </div>
  )
}

function Recording(): JSX.Element {
  const now = recording.value
  async function finish(): Promise<void> {
    draft.value = await call<{ name: string; text: string }>('DELETE', 'api/recording?name=recorded')
  }
  const begin = (): Promise<unknown> => call('POST', 'api/recording', { hub_id: hubId.value })
  if (now === null)
    return (
      <button class="btn btn-sm justify-self-start" onClick={() => void attempt('Record', begin)}>
        <Icon icon={CircleDot} /> Record what I do
      </button>
    )
  return (
    <p class="flex flex-wrap items-center gap-2" data-recording={now.steps}>
      <span class="status status-error" /> Recording hub {now.hub_id}: {now.steps}{' '}
      {now.steps === 1 ? 'step' : 'steps'}
      <button
        class="btn btn-sm"
        disabled={draft.value !== null}
        onClick={() => void attempt('End the recording', finish)}
      >
        <Icon icon={Square} /> End it
      </button>
      {draft.value && <span class="quiet text-sm">Save or discard the scenario before you end it.</span>}
    </p>
  )
}

/** A customer with a telephone and hands, if there is a cloud. */
function Customer(): JSX.Element {
  const stocked = (state.value?.rows ?? []).filter(
    ({ product_id, units }) => product_id !== null && units > 0,
  )
  const customer = buyer.value
  function fillCart(event: SubmitEvent): void {
    const { row = '', units } = textsOf(event)
    void attempt('Fill the cart', () => step({ cart: { customer, items: [{ row, units: Number(units) }] } }))
  }
  const PersonAction = ({
    name,
    children,
    ...rest
  }: {
    name: string
    children: string
    method?: string
  }): JSX.Element => (
    <button
      type="button"
      class="btn btn-sm"
      onClick={() => void attempt(children, () => step({ [name]: { customer, ...rest } }))}
    >
      {children}
    </button>
  )
  return (
    <details class="collapse collapse-arrow border border-base-300">
      <summary class="collapse-title font-medium py-3 min-h-0">Buy something</summary>
      <form class="collapse-content grid gap-2" onSubmit={fillCart} data-customer>
        <div class="flex flex-wrap gap-2 items-end">
          <label class="grid gap-1 text-sm">
            Customer
            <input
              class="input input-sm w-24"
              value={customer}
              pattern="[a-z][a-z0-9_]*"
              onInput={(event) => void (buyer.value = event.currentTarget.value)}
            />
          </label>
          <label class="grid gap-1 text-sm">
            From the row
            <select name="row" class="select select-sm w-36">
              {stocked.map(({ cabinet, shelf, row, units }) => (
                <option key={`${cabinet}/${shelf}/${row}`} value={`${cabinet}/${shelf}/${row}`}>
                  {`${cabinet}/${shelf}/${row}: ${units}`}
                </option>
              ))}
            </select>
          </label>
          <label class="grid gap-1 text-sm">
            Units
            <input name="units" type="number" min="1" max="20" defaultValue="1" class="input input-sm w-20" />
          </label>
          <button class="btn btn-sm">Add to cart</button>
        </div>
        <div class="flex flex-wrap gap-2">
          <PersonAction name="pay">Pay</PersonAction>
          <PersonAction name="pay" method="pm_card_chargeDeclined">
            Pay with a declined card
          </PersonAction>
          <PersonAction name="open">Open the bin</PersonAction>
          <PersonAction name="take">Take the goods</PersonAction>
          <PersonAction name="cancel">Cancel</PersonAction>
        </div>
      </form>
    </details>
  )
}
const buyer = signal('ann')

const icons = { waiting: Circle, running: CircleDot, passed: CircleCheck, failed: CircleX } as const
const colours = {
  waiting: 'quiet',
  running: 'text-info',
  passed: 'text-success',
  failed: 'text-error',
} as const

function StepLine({ result }: { result: StepResult }): JSX.Element {
  const { state: stands, text, note, endedAtMs, problem } = result
  return (
    <li class={`flex gap-2 text-sm py-0.5 ${stands === 'waiting' ? 'quiet' : ''}`} data-step={stands}>
      <Icon icon={icons[stands]} class={`mt-1 ${colours[stands]}`} />
      <span class="grow min-w-0 break-words">
        {note && <span class="font-medium">{note} · </span>}
        <span class={note ? 'quiet' : ''}>{text}</span>
        {problem && <span class="block text-error">{problem}</span>}
      </span>
      {endedAtMs !== undefined && <span class="quiet tabular-nums">{(endedAtMs / 1000).toFixed(1)} s</span>}
    </li>
  )
}

function Runs(): JSX.Element | null {
  const last = runs.value.at(-1)
  if (!last) return null
  const words = { running: 'runs', passed: 'passed', failed: 'failed', stopped: 'stopped' }
  return (
    <section aria-label="The last run" data-run={last.state}>
      <div class="flex items-center gap-2 mb-1">
        <h2 class="font-semibold grow">
          {last.name.replaceAll('-', ' ')} {words[last.state]}
          {last.durationMs !== undefined && ` after ${(last.durationMs / 1000).toFixed(1)} s`}
        </h2>
        {last.state === 'running' && (
          <button
            class="btn btn-sm"
            onClick={() => void attempt('Stop the run', () => call('DELETE', `api/runs/${last.id}`))}
          >
            <Icon icon={Square} /> Stop
          </button>
        )}
      </div>
      {last.problem && (
        <p class="text-error text-sm mb-2" role="alert">
          {last.problem}
        </p>
      )}
      <ol>
        {last.steps.map((result, index) => (
          <StepLine key={`${last.id} ${index}`} result={result} />
        ))}
      </ol>
    </section>
  )
}
