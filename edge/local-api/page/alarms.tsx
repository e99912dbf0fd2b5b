import { CircleAlert, CircleCheck } from 'lucide'
import type { JSX } from 'preact'
import { textAtHub } from '../../../protocol/model/alarms.ts'
import { deviceSubject, rowSubject, subjectWithProduct } from '../../../protocol/model/subject.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { keyOf, rowKey } from './counts.ts'
import { isAsked, nameOf, sellingObstacle } from './incidents.ts'
import { Row } from './shelves.tsx'
import { showDevice } from './show.ts'
import { act, hardware, productName, running, selected, state } from './store.ts'

/** The picture's device for an alarm's subject: `bin 3` is `bin-3`; for `row 1/2/3` also the row. */
function placeOf(subject: string): { device: string; row?: string } | undefined {
  const [kind, name = ''] = subject.split(' ')
  if (kind === 'row') return { device: `cabinet-${name.split('/')[0]!}`, row: name }
  if (kind === 'door') return { device: name }
  if (kind === 'controller')
    return hardware.value?.controllers.some(({ id }) => id === name) ? { device: name } : undefined
  return name === '' ? undefined : { device: `${kind!}-${name}` }
}

const since = (at: number): string =>
  new Date(at).toLocaleString([], { dateStyle: 'short', timeStyle: 'short' })

/** Content of a card about one incident. */
export interface Incident {
  key: string
  title: string
  remedy: string
  /** The incident's start, and further facts. */
  about: string
  place: { device: string; row?: string } | undefined
  isWarning: boolean
  /** Attributes that identify the card for tests and styles. */
  mark: Readonly<Record<string, string | true>>
  /** The operation of unknown outcome that the card asks about. */
  settles?: { operation: string; device: string; question: string }
}

type State = NonNullable<typeof state.value>

/** All incidents, the most urgent first. */
export function incidentsOf(is: State): Incident[] {
  const obstacle = sellingObstacle(is)
  return [
    ...(obstacle
      ? [
          {
            key: 'obstacle',
            title: obstacle.text,
            remedy: obstacle.remedy,
            about: '',
            place: undefined,
            isWarning: obstacle.code === null,
            mark: { 'data-obstacle': obstacle.code ?? 'stopped' },
          },
        ]
      : []),
    ...is.alarms
      .filter((alarm) => !isAsked(is, alarm))
      .map(({ code, subject, detail, raised_at }): Incident => {
        const { title, remedy } = textAtHub(code, nameOf(is, subject), detail ?? '')
        return {
          key: `${code} ${subject}`,
          title,
          remedy,
          about: `Since ${since(raised_at)}`,
          place: placeOf(subject),
          isWarning: false,
          mark: {},
        }
      }),
    ...is.unknown_operations.map((operation): Incident => {
      const { device, action, location, product_id, order_number } = operation
      const subject = location
        ? subjectWithProduct(rowSubject(location), productName(product_id))
        : device.replaceAll('-', ' ')
      const { title, remedy } = textAtHub('unknown_operation', subject, action.replaceAll('_', ' '))
      return {
        key: operation.operation_id,
        title,
        remedy,
        about: `${order_number === null ? '' : `Order ${order_number}. `}Since ${since(operation.at)}`,
        place: { device, ...(location && { row: rowKey(location) }) },
        isWarning: true,
        mark: { 'data-unknown': true },
        settles: {
          operation: operation.operation_id,
          device,
          question: location
            ? `Did a unit of ${productName(product_id)} fall from row ${rowKey(location)}?`
            : `Did ${deviceSubject(device)} move?`,
        },
      }
    }),
  ]
}

/** Cards of all incidents, each with its remedy. A card may ask a person for the outcome of an operation. */
export function Alarms(): JSX.Element {
  const incidents = incidentsOf(state.value!)
  if (incidents.length === 0)
    return (
      <p class="alert alert-success alert-soft py-2 text-base-content" data-alarms="0">
        <Icon icon={CircleCheck} /> Nothing is wrong.
      </p>
    )
  return (
    <section id="alarms" tabindex={-1} aria-label="Alarms" data-alarms={state.value!.alarms.length}>
      <ul class="grid gap-2">
        {incidents.map((incident) => (
          <Card key={incident.key} incident={incident} />
        ))}
      </ul>
    </section>
  )
}

function Card({ incident }: { incident: Incident }): JSX.Element {
  const { title, remedy, about, place, isWarning, mark, settles } = incident
  // An opened cabinet shows the row among its shelves.
  const facing =
    place?.device === selected.value ? undefined : state.value!.stock.find((one) => keyOf(one) === place?.row)
  return (
    <li class={`card bg-base-100 border-l-4 ${isWarning ? 'border-warning' : 'border-error'} p-3`} {...mark}>
      <h2 class="font-semibold flex items-start gap-2">
        <Icon icon={CircleAlert} class={`mt-1 ${isWarning ? '' : 'text-error'}`} />
        <span>{title}</span>
      </h2>
      <p>{remedy}</p>
      {about !== '' && <p class="quiet text-sm">{about}</p>}
      {settles && <p class="font-medium mt-2">{settles.question}</p>}
      <div class="flex flex-wrap gap-3 mt-2">
        {place && (
          <button
            class="btn btn-sm"
            aria-label={`Show it: ${title}`}
            onClick={() => showDevice(place.device, place.row)}
          >
            Show it
          </button>
        )}
        {settles && <Settle {...settles} title={title} />}
      </div>
      {facing && (
        <ul class="mt-2" data-incident-row>
          <Row facing={facing} />
        </ul>
      )}
    </li>
  )
}

/** A person's resolution of an operation cannot be reverted. */
function Settle(props: { operation: string; device: string; title: string }): JSX.Element {
  const { operation, device, title } = props
  return (
    <>
      {([true, false] as const).map((happened) => {
        const what = `${device}: ${happened ? 'it happened' : 'it did not happen'}`
        return (
          <HoldButton
            key={String(happened)}
            class="btn-sm"
            label={`${happened ? 'Yes, it happened' : 'No'}: ${title}`}
            isBusy={running.value.has(what)}
            onHeld={() => void act(what, `operations/${operation}/settle`, { happened })}
          >
            {happened ? 'Yes, it happened' : 'No'}
          </HoldButton>
        )
      })}
    </>
  )
}
