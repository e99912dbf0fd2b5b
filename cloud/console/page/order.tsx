import { counted } from '../../../protocol/model/counted.ts'
import { Banknote, DoorOpen, PackageCheck, RotateCcw, ScanEye } from 'lucide'
import type { IconNode } from 'lucide'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { OrderEvidence } from '../../../protocol/contract/owner-orders.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { useData } from './data.ts'
import { money, time } from './format.ts'
import { readHubFacts } from './hubs.ts'
import { OrderBadges } from './orders.tsx'
import { Card, Heading, HeldAct, Input, Link, Loaded } from './parts.tsx'
import { ask, can, imageAt } from './session.ts'

const kinds: Readonly<Record<OrderEvidence['evidence'][number]['kind'], IconNode>> = {
  paid: Banknote,
  dispensed: PackageCheck,
  sensor: ScanEye,
  door: DoorOpen,
  refunded: RotateCcw,
}

/** An order with its evidence, its refunds, and the bins for a customer on the telephone. */
export function OrderPage({ id }: { id: number }): JSX.Element {
  const found = useData(async () => {
    const order = await ask('GET /owners/orders/{order_id}', { params: { order_id: id } })
    return { order, hub: await readHubFacts(order.hub_id) }
  }, [id])
  return (
    <>
      {!found.isMissing && <Heading text={`Order ${id}`} />}
      <Loaded of={found} missing="There is no such order">
        {({ order, hub }) => (
          <div class="grid gap-3 lg:grid-cols-2 items-start">
            <Card name="evidence" title="Evidence">
              <p class="text-lg" data-summary>
                {order.summary}
              </p>
              <OrderBadges {...order} />
              <p class="text-sm quiet my-2">
                <Link to={`/hubs/${order.hub_id}`} class="link touch">
                  {hub.name}
                </Link>
                , {time(order.created_at, hub.timezone)}, customer {order.user_id}, total{' '}
                {money(order.total, order.currency)} with {money(order.tax_total, order.currency)} tax
              </p>
              <ol class="grid gap-2">
                {order.evidence.map(({ at, kind, text }, index) => (
                  <li key={index} class="flex gap-3" data-evidence={kind}>
                    <Icon icon={kinds[kind]} class="mt-1" />
                    <span class="min-w-0">
                      <b>{kind}</b> {text}{' '}
                      <span class="quiet text-sm whitespace-nowrap">{time(at, hub.timezone)}</span>
                    </span>
                  </li>
                ))}
              </ol>
            </Card>
            <div class="grid gap-3">
              <FailedRefunds order={order} />
              <Items order={order} />
              <Bins order={order} />
            </div>
          </div>
        )}
      </Loaded>
    </>
  )
}

function Items({ order }: { order: OrderEvidence }): JSX.Element {
  const left = order.paid - order.refunded
  const isRefundable = can('orders:write', order.hub_id) && left > 0
  const rest = money(left, order.currency)
  return (
    <Card title="Products" name="products">
      <ul class="grid gap-3">
        {order.order_items.map((item) => (
          <Item key={item.productUPC} order={order} item={item} isRefundable={isRefundable} />
        ))}
      </ul>
      {isRefundable && (
        <HeldAct
          class="btn-sm mt-3"
          does={`Refund ${rest}`}
          label={`Refund all that is left, ${rest}`}
          run={() => ask('POST /owners/orders/{order_id}/refund', { params: { order_id: order.id } })}
        >
          {`Refund all that is left, ${rest}`}
        </HeldAct>
      )}
    </Card>
  )
}

interface ItemProps {
  order: OrderEvidence
  item: OrderEvidence['order_items'][number]
  isRefundable: boolean
}

function Item({ order, item, isRefundable }: ItemProps): JSX.Element {
  const { name, qty, qty_dropped, refunded_quantity, price, productUPC, image_url } = item
  const most = qty - refunded_quantity
  const [chosen, setUnits] = useState(1)
  const units = Math.min(chosen, most)
  const refund = () =>
    ask('POST /owners/orders/{order_id}/items/{product_id}/refund', {
      params: { order_id: order.id, product_id: Number(productUPC) },
      body: { quantity: units },
    })
  const what = `Refund ${counted(units, 'unit')}`
  return (
    <li class="flex gap-3" data-item={productUPC}>
      {image_url !== '' && <img src={imageAt(image_url)} alt="" class="size-12 object-contain rounded" />}
      <div class="grow min-w-0">
        <p class="font-medium break-words">
          {qty} × {name}
        </p>
        <p class="text-sm quiet">
          {money(price, order.currency)} each, {qty_dropped} dispensed, {refunded_quantity} refunded
        </p>
        {isRefundable && most > 0 && (
          <div class="flex flex-wrap items-center gap-2 mt-1">
            {most > 1 && (
              <select
                class="select select-sm w-24"
                aria-label={`Units of ${name} to refund`}
                value={units}
                onChange={({ currentTarget }) => setUnits(Number(currentTarget.value))}
              >
                {Array.from({ length: most }, (_, index) => (
                  <option key={index} value={index + 1}>
                    {counted(index + 1, 'unit')}
                  </option>
                ))}
              </select>
            )}
            <HeldAct does={`${what} of ${name}`} run={refund}>
              {what}
            </HeldAct>
          </div>
        )}
      </div>
    </li>
  )
}

/** Refunds that the processor rejected. A person records here which ones are paid to the customer in another way. */
function FailedRefunds({ order }: { order: OrderEvidence }): JSX.Element | null {
  const { id, hub_id, failed_refunds: failed, currency } = order
  const [reason, setReason] = useState('')
  if (failed.length === 0) return null
  return (
    <Card title="Refunds that failed" name="failed-refunds">
      <p>
        Refund again below. If that fails too, record it here, then pay the customer in another way. It cannot
        be undone.
      </p>
      {can('orders:write', hub_id) && (
        <Input
          label="How the customer was paid. Fill this in to record it."
          class="input"
          maxLength={200}
          placeholder="Cash at the hub"
          value={reason}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      )}
      <ul class="grid gap-2 mt-2">
        {failed.map(({ refund_id, amount, failure_reason }) => {
          const text = `Record ${money(amount, currency)} as paid`
          return (
            <li key={refund_id} data-failed={refund_id}>
              {money(amount, currency)}: {failure_reason?.replaceAll('_', ' ') ?? 'no reason is known'}{' '}
              {can('orders:write', hub_id) && reason.trim() !== '' && (
                <HeldAct
                  does={text}
                  run={() =>
                    ask('POST /owners/orders/{order_id}/refunds/settle', {
                      params: { order_id: id },
                      body: { refund_ids: [refund_id], amount, reason: reason.trim() },
                    })
                  }
                >
                  {text}
                </HeldAct>
              )}
            </li>
          )
        })}
      </ul>
    </Card>
  )
}

/** The bins of the order, for a customer who calls. */
function Bins({ order }: { order: OrderEvidence }): JSX.Element | null {
  const { hub_id: hub, bins, processing_status: status } = order
  const mayHaveGoods = status >= OrderStatus.READY && status !== OrderStatus.COMPLETED
  if (!mayHaveGoods || bins.length === 0 || !can('controls:write', hub)) return null
  return (
    <Card title="For a customer on the telephone" name="bins">
      <p class="mb-2">
        Ask whether the customer stands at the hub. Then open the bin: the door opens for everybody.
      </p>
      <div class="flex flex-wrap gap-2">
        {bins.map((bin) => (
          <HeldAct
            key={bin}
            class="btn-primary min-h-11"
            does={`Open bin ${bin}`}
            run={() => ask('POST /owners/controls/open_bin', { query: { hub, bin, confirm: false } })}
          >
            {`Open bin ${bin}`}
          </HeldAct>
        ))}
      </div>
    </Card>
  )
}
