import { CircleAlert, CircleCheck } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { act, hardware, productName, selected, state } from './store.ts'
import { sellingObstacle } from './obstacle.ts'
import { alarmWords } from './words.ts'

/** The device of the picture that an alarm's subject names: `bin 3` is `bin-3`. */
function deviceOf(subject: string): string | undefined {
  const [kind, name = ''] = subject.split(' ')
  if (kind === 'row') return `cabinet-${name.split('/')[0]!}`
  if (kind === 'door') return name
  if (kind === 'controller')
    return hardware.value?.controllers.some(({ id }) => id === name) ? name : undefined
  return name === '' ? undefined : `${kind!}-${name}`
}

const since = (at: number): string =>
  new Date(at).toLocaleString([], { dateStyle: 'short', timeStyle: 'short' })

/** What is wrong, why, and what to do about it; and what only a person can say. */
export function Alarms(): JSX.Element {
  const { alarms, unknown_operations: unknown } = state.value!
  const obstacle = sellingObstacle(state.value!)
  if (alarms.length === 0 && unknown.length === 0 && obstacle === null)
    return (
      <p class="alert alert-success alert-soft py-2 text-base-content" data-alarms="0">
        <Icon icon={CircleCheck} /> Nothing is wrong.
      </p>
    )
  return (
    <section aria-label="Alarms" data-alarms={alarms.length}>
      <ul class="grid gap-2">
        {obstacle && (
          <li
            class={`card bg-base-100 border-l-4 ${obstacle.code === null ? 'border-warning' : 'border-error'} p-3`}
            data-obstacle={obstacle.code ?? 'stopped'}
          >
            <h2 class="font-semibold flex items-start gap-2">
              <Icon icon={CircleAlert} class="mt-1" />
              <span>{obstacle.text}</span>
            </h2>
            <p>{obstacle.remedy}</p>
          </li>
        )}
        {alarms.map(({ code, subject, detail, raised_at }) => {
          const { title, remedy } = alarmWords(code)
          const device = deviceOf(subject)
          return (
            <li key={`${code} ${subject}`} class="card bg-base-100 border-l-4 border-error p-3">
              <h2 class="font-semibold flex items-start gap-2">
                <Icon icon={CircleAlert} class="mt-1 text-error" />
                <span>
                  {subject === 'hub' ? '' : `${subject[0]!.toUpperCase()}${subject.slice(1)}: `}
                  {title}
                </span>
              </h2>
              <p>{remedy}</p>
              <p class="quiet text-sm">
                Since {since(raised_at)}
                {detail ? `. ${detail}` : ''}
              </p>
              {device && (
                <button
                  class="btn btn-sm justify-self-start self-start mt-1"
                  onClick={() => void (selected.value = device)}
                >
                  Show it
                </button>
              )}
            </li>
          )
        })}
        {unknown.map((operation) => (
          <li
            key={operation.operation_id}
            class="card bg-base-100 border-l-4 border-warning p-3"
            data-unknown
          >
            <h2 class="font-semibold">
              {`${operation.device} ${operation.action.replaceAll('_', ' ')}: did it happen?`}
            </h2>
            <p>
              {operation.location
                ? `Row ${operation.location.cabinet}/${operation.location.shelf}/${operation.location.row}, ${productName(operation.product_id)}`
                : 'The hub lost sight of it.'}
              {operation.order_number === null ? '' : `, order ${operation.order_number}`}. Since{' '}
              {since(operation.at)}.
            </p>
            <div class="flex gap-2 mt-1">
              {([true, false] as const).map((happened) => (
                <button
                  key={String(happened)}
                  class="btn btn-sm"
                  onClick={() =>
                    void act(
                      `${operation.device}: ${happened ? 'it happened' : 'it did not happen'}`,
                      `operations/${operation.operation_id}/settle`,
                      {
                        happened,
                      },
                    )
                  }
                >
                  {happened ? 'Yes, it happened' : 'No'}
                </button>
              ))}
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
