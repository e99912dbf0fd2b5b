import { Search } from 'lucide'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { OwnerOrder } from '../../../protocol/contract/owner-orders.ts'
import { OrderStatus, type OrderStatusName, orderStatusName } from '../../../protocol/model/order-status.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { address, go, setQuery } from './address.ts'
import { useData } from './data.ts'
import { money, time, title } from './format.ts'
import { readHubFacts, useHubs } from './hubs.ts'
import { Card, ExportButton, Field, Heading, HubSelect, Input, Link, Loaded, Nothing } from './parts.tsx'
import { ask, csv } from './session.ts'

const PAGE = 30

/** The filter, as the address has it. */
interface Filter {
  hub: number | undefined
  search: string
  from: string
  to: string
  status: string
}

function filterOf(firstHub: number | undefined): Filter {
  const { query } = address.value
  const text = (name: string): string => query.get(name) ?? ''
  return {
    hub: Number(text('hub')) || firstHub,
    search: text('search'),
    from: text('from'),
    to: text('to'),
    status: text('status'),
  }
}

const queryOf = ({ hub, search, from, to, status }: Filter & { hub: number }) => ({
  hub_id: hub,
  ...(search !== '' && { search }),
  ...(from !== '' && { from }),
  ...(to !== '' && { to }),
  ...(status !== '' && { status: [status as OrderStatusName] }),
})

interface Found {
  orders: OwnerOrder[]
  hasMore: boolean
  /** The hub of the orders. */
  hub: { timezone: string; currency: string } | undefined
}

/** The newest orders, at least `most`, page by page. */
async function readOrders(filter: Filter, most: number): Promise<Found> {
  const { hub } = filter
  if (hub === undefined) return { orders: [], hasMore: false, hub: undefined }
  const facts = await readHubFacts(hub)
  const orders: OwnerOrder[] = []
  let cursor: number | null = null
  do {
    const page: { data: OwnerOrder[]; next_cursor: number | null } = await ask(
      'GET /owners/hubs/all_orders_paginated/',
      { query: { ...queryOf({ ...filter, hub }), limit: PAGE, cursor } },
    )
    orders.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== null && orders.length < most)
  return { orders, hasMore: cursor !== null, hub: facts }
}

/** Finds orders by number, product, day and state. */
export function OrdersPage(): JSX.Element {
  const hubs = useHubs()
  const filter = filterOf(hubs.data?.[0]?.id)
  const [most, setMost] = useState(PAGE)
  const found = useData(() => readOrders(filter, most), [filter, most])
  function search(event: SubmitEvent): void {
    const texts = textsOf(event)
    // The number of an order names it, whatever its hub.
    if (/^\d{1,10}$/.test(texts['search'] ?? '')) go(`/orders/${texts['search']}`)
    else setQuery(texts)
  }
  return (
    <>
      <Heading text="Orders" />
      <Card class="mb-3">
        <form
          class="grid gap-2 grid-cols-2 lg:grid-cols-[1fr_2fr_auto_auto_auto_auto] items-end"
          onSubmit={search}
        >
          <HubSelect value={filter.hub} />
          <Input label="Number, name, UPC" name="search" type="search" defaultValue={filter.search} />
          <Input label="From" name="from" type="date" defaultValue={filter.from} />
          <Input label="To" name="to" type="date" defaultValue={filter.to} />
          <Field label="State">
            <select name="status" class="select w-full">
              <option value="">Any state</option>
              {Object.keys(OrderStatus)
                .filter((name) => OrderStatus[name as OrderStatusName] >= OrderStatus.QUEUED)
                .map((name) => (
                  <option key={name} value={name} selected={name === filter.status}>
                    {title(name)}
                  </option>
                ))}
            </select>
          </Field>
          <button class="btn btn-primary">
            <Icon icon={Search} /> Find
          </button>
        </form>
      </Card>
      <Loaded of={found}>
        {({ orders, hasMore, hub }) => (
          <Card name="orders">
            {orders.length === 0 ? (
              <Nothing>No order matches.</Nothing>
            ) : (
              <p class="text-sm quiet">
                Times are those of the hub. Amounts are after discounts, without tax.
              </p>
            )}
            <ul>
              {orders.map((order) => (
                <OrderLine key={order.id} order={order} hub={hub} />
              ))}
            </ul>
            <div class="flex flex-wrap gap-2 mt-3">
              {hasMore && (
                <button class="btn btn-sm" onClick={() => setMost(orders.length + PAGE)}>
                  Show more
                </button>
              )}
              {filter.hub !== undefined && orders.length > 0 && (
                <ExportButton
                  read={() =>
                    csv('GET /owners/hubs/all_orders_paginated/', {
                      query: queryOf({ ...filter, hub: filter.hub! }),
                    })
                  }
                  file="orders.csv"
                />
              )}
            </div>
          </Card>
        )}
      </Loaded>
    </>
  )
}

const badges: Readonly<Record<string, string>> = {
  COMPLETED: 'badge-success',
  FAILED: 'badge-error',
  TIMED_OUT: 'badge-error',
}

/** The states of an order and of its money. */
export const OrderBadges = ({
  processing_status,
  payment_status,
}: Pick<OwnerOrder, 'processing_status' | 'payment_status'>): JSX.Element => {
  const name = orderStatusName(processing_status)
  return (
    <span class="flex flex-wrap gap-1">
      <span class={`badge badge-sm badge-soft text-base-content ${badges[name] ?? ''}`}>{title(name)}</span>
      {payment_status !== 'completed' && (
        <span class="badge badge-sm badge-soft badge-warning text-base-content">{title(payment_status)}</span>
      )}
    </span>
  )
}

function OrderLine({ order, hub }: { order: OwnerOrder; hub: Found['hub'] }): JSX.Element {
  const { id, created_at, order_items: items, total_price_discounted } = order
  return (
    <li class="border-b border-base-300 py-1 grid gap-x-3 grid-cols-[auto_1fr_auto] sm:grid-cols-[5rem_11rem_1fr_auto_12rem] items-center text-sm">
      <Link to={`/orders/${id}`} class="link font-medium touch tabular-nums">
        {id}
      </Link>
      <span class="quiet">{time(created_at, hub?.timezone)}</span>
      <span class="col-span-3 sm:col-span-1 order-last sm:order-none min-w-0 break-words">
        {items.map(({ qty, name }) => `${qty} × ${name}`).join(', ')}
      </span>
      <span class="tabular-nums text-right">{money(total_price_discounted, hub?.currency)}</span>
      <span class="col-span-3 sm:col-span-1 order-last sm:order-none">
        <OrderBadges {...order} />
      </span>
    </li>
  )
}
