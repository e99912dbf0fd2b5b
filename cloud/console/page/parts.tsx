import { CircleAlert, CircleCheck, Download, Info, TriangleAlert } from 'lucide'
import type { ComponentChildren, InputHTMLAttributes, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { attempt } from '../../../protocol/ui/notices.tsx'
import { saveText } from '../../../protocol/ui/save-text.ts'
import { address, go, headingDrawn, hrefOf, setQuery } from './address.ts'
import { type Data, refresh } from './data.ts'
import { useHubs } from './hubs.ts'
import { isRunning, once } from './running-acts.ts'
import { awaySince } from './session.ts'

/** Parts that several pages use. */

interface LinkProps {
  to: string
  children: ComponentChildren
  class?: string
  isCurrent?: boolean
}

/** A link to another page of the console. */
export const Link = ({ to, children, class: more = 'link', isCurrent = false }: LinkProps): JSX.Element => (
  <a
    href={hrefOf(to)}
    class={more}
    aria-current={isCurrent ? 'page' : undefined}
    onClick={(event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
      event.preventDefault()
      go(to)
    }}
  >
    {children}
  </a>
)

/** The heading of a page, with its controls. */
export function Heading({ text, children }: { text: string; children?: ComponentChildren }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => headingDrawn(heading.current), [])
  return (
    <div class="flex flex-wrap items-center gap-2 mb-3">
      <h1 ref={heading} class="text-xl font-semibold grow" tabindex={-1}>
        {text}
      </h1>
      {children}
    </div>
  )
}

interface CardProps {
  title?: string
  children: ComponentChildren
  class?: string
  name?: string
}

export const Card = ({ title: text, children, class: more = '', name }: CardProps): JSX.Element => (
  <section class={`card bg-base-100 p-3 min-w-0 ${more}`} aria-label={text} data-card={name}>
    {text !== undefined && <h2 class="font-semibold mb-2">{text}</h2>}
    {children}
  </section>
)

/** A number with its name. */
export const Figure = (props: {
  name: string
  label: string
  value: string
  children?: ComponentChildren
}): JSX.Element => (
  <div class="card bg-base-100 p-3 min-w-0" data-figure={props.name}>
    <p class="text-sm quiet">{props.label}</p>
    <p class="text-2xl font-semibold tabular-nums break-words">{props.value}</p>
    {props.children !== undefined && <p class="text-sm quiet">{props.children}</p>}
  </div>
)

/** The page of an address that names nothing, or nothing that the person may see. */
export const Missing = ({ text }: { text: string }): JSX.Element => (
  <div class="card bg-base-100 p-4" data-missing>
    <Heading text={text} />
    <p>The address may be wrong, or your role does not include it.</p>
    <Link to="/today" class="btn btn-sm mt-3 justify-self-start">
      Show today
    </Link>
  </div>
)

/**
 * Shows data when it is there; before, that it is read; or why it could not be read. Data that could not be read again is
 * marked, unless the page shows that the service is away. `missing`: the heading if the address
 * names something that does not exist, or that the person may not see.
 */
export function Loaded<T>({
  of: { data, failure, isMissing },
  missing,
  children,
}: {
  of: Data<T>
  missing?: string
  children: (data: T) => ComponentChildren
}): JSX.Element {
  if (data !== undefined)
    return (
      <>
        {failure !== undefined && awaySince.value === null && (
          <p class="alert alert-warning alert-soft text-base-content mb-2" role="alert" data-old>
            <Icon icon={CircleAlert} /> This could not be read again, so it may be old. {failure}
          </p>
        )}
        {children(data)}
      </>
    )
  if (failure !== undefined && isMissing && missing !== undefined) return <Missing text={missing} />
  if (failure !== undefined)
    return (
      <p class="alert alert-error alert-soft text-base-content" role="alert">
        <Icon icon={CircleAlert} /> {failure}
      </p>
    )
  return (
    <p class="quiet p-2" aria-busy="true">
      Reading …
    </p>
  )
}

/** A list without rows. */
export const Nothing = ({ children }: { children: string }): JSX.Element => (
  <p class="quiet flex items-center gap-2">
    <Icon icon={CircleCheck} /> {children}
  </p>
)

const severities = {
  critical: { icon: TriangleAlert, class: 'border-error', text: 'text-error' },
  warning: { icon: CircleAlert, class: 'border-warning', text: '' },
  info: { icon: Info, class: 'border-info', text: '' },
} as const
export const severityLooks = severities

/** Executes a write, shows its result, and reads the shown data again. */
export const act = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  await attempt(what, work)
  refresh()
}

interface HeldActProps {
  /** Name of the act, for its result. */
  does: string
  run: () => Promise<unknown>
  /** Name of the button, if it differs. */
  label?: string
  class?: string
  children: string
}

/** A button that the person must hold. It executes a write, which must have ended before the same one begins again. */
export function HeldAct({ does, run, label = does, class: more, children }: HeldActProps): JSX.Element {
  const name = `${address.value.path}: ${label}, ${does}`
  return (
    <HoldButton
      class={more ?? 'btn-sm'}
      label={label}
      isBusy={isRunning(name)}
      onHeld={() => void once(name, () => act(does, run))}
    >
      {children}
    </HoldButton>
  )
}

/** The texts of a form, by the names of its fields. */
export type Texts = ReturnType<typeof textsOf>

interface ActFormProps {
  class: string
  /** Name of the act, for its result. */
  does: (texts: Texts) => string
  run: (texts: Texts, given: FormData) => Promise<unknown>
  children: ComponentChildren
}

/** A form that executes one write at a time. After a success its fields have their first values again. */
export function ActForm({ class: more, does, run, children }: ActFormProps): JSX.Element {
  const isRunning = useRef(false)
  return (
    <form
      class={more}
      onSubmit={(event) => {
        const form = event.currentTarget
        const texts = textsOf(event)
        const given = new FormData(form)
        if (isRunning.current) return
        isRunning.current = true
        void act(does(texts), async () => {
          await run(texts, given)
          form.reset()
        }).finally(() => (isRunning.current = false))
      }}
    >
      {children}
    </form>
  )
}

/** Saves a list, all of it, as CSV. */
export function ExportButton({ read, file }: { read: () => Promise<string>; file: string }): JSX.Element {
  const save = async (): Promise<void> => saveText(await read(), file, 'text/csv')
  return (
    <button class="btn btn-sm" onClick={() => void attempt('Export', save)}>
      <Icon icon={Download} /> Export as CSV
    </button>
  )
}

/** Names the time zone of the times on a page. */
export const ZoneNote = ({ zone }: { zone: string | undefined }): JSX.Element | null =>
  zone === undefined ? null : (
    <p class="quiet text-sm mb-2" data-zone>
      Times are in the time zone {zone}.
    </p>
  )

/** A field with its label. */
export const Field = ({ label, children }: { label: string; children: ComponentChildren }): JSX.Element => (
  <label class="grid gap-1 text-sm min-w-0">
    <span>{label}</span>
    {children}
  </label>
)

/** An input with its label. */
export const Input = ({ label, ...input }: { label: string } & InputHTMLAttributes): JSX.Element => (
  <Field label={label}>
    <input class="input w-full" {...input} />
  </Field>
)

interface HubSelectProps {
  value: number | undefined
  /** Text of the choice of all hubs; absent if one hub is needed. */
  all?: string
}

/** Chooses the hub of a page, which its address names. */
export function HubSelect({ value, all }: HubSelectProps): JSX.Element {
  const { data: hubs = [] } = useHubs()
  return (
    <Field label="Hub">
      <select
        class="select w-full"
        value={value ?? ''}
        onChange={({ currentTarget }) => setQuery({ hub: currentTarget.value })}
      >
        {all !== undefined && <option value="">{all}</option>}
        {hubs.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </Field>
  )
}

/** Leads to the page of a hub: at once if the person has only one. */
export function HubPick({ to }: { to: string }): JSX.Element {
  const hubs = useHubs()
  useEffect(() => {
    if (hubs.data?.length === 1) go(`${to}/${hubs.data[0]!.id}`)
  }, [hubs.data])
  return (
    <>
      <Heading text="Choose a hub" />
      <Loaded of={hubs}>
        {(list) => (
          <ul class="grid gap-2 md:grid-cols-2 xl:grid-cols-3">
            {list.map(({ id, name, city }) => (
              <li key={id} class="card bg-base-100 p-3">
                <Link to={`${to}/${id}`} class="link touch font-medium">
                  {name}
                </Link>
                <span class="text-sm quiet">
                  hub {id}, {city}
                </span>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </>
  )
}
