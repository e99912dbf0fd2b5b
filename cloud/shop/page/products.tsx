import { signal } from '@preact/signals'
import { Minus, Package, Plus } from 'lucide'
import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Product } from '../../../protocol/contract/consumer-products.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { pictureAddress } from '../../../protocol/ui/picture-address.ts'
import { filled, money, words } from './language.ts'
import { address, cart, change, hub, products, quantityOf } from './store.ts'

const wanted = signal('')
const category = signal('')

export function Picture({ url, large }: { url: string | null; large?: boolean }): JSX.Element {
  const size = large ? 'aspect-4/3 w-full' : 'size-12 shrink-0'
  return url ? (
    <img
      class={`${size} object-contain rounded bg-base-200`}
      src={pictureAddress(url, address(''))}
      alt=""
      loading="lazy"
      decoding="async"
      width={large ? 240 : 48}
      height={large ? 180 : 48}
    />
  ) : (
    <span class={`${size} rounded bg-base-200 grid place-items-center quiet`}>
      <Icon icon={Package} />
    </span>
  )
}

/** These buttons replaced the button of this product. They get its focus. */
let added = 0

interface QuantityProps {
  id: number
  name: string
  most: number
  takesFocus?: boolean
}

/** Buttons for the number of units in the cart. */
export function Quantity({ id, name, most, takesFocus }: QuantityProps): JSX.Element {
  const quantity = quantityOf(id)
  const more = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    if (!takesFocus || added !== id) return
    more.current?.focus()
    added = 0
  }, [])
  return (
    <div class="flex items-center gap-2">
      <button
        class="btn btn-square"
        aria-label={filled(words().remove_one, { name })}
        onClick={() => void change(id, -1)}
      >
        <Icon icon={Minus} />
      </button>
      <span class="min-w-6 text-center" aria-live="polite">
        {quantity}
      </span>
      <button
        class="btn btn-square"
        ref={more}
        aria-label={filled(words().add_one, { name })}
        disabled={quantity >= most}
        onClick={() => void change(id, 1)}
      >
        <Icon icon={Plus} />
      </button>
    </div>
  )
}

/** Few units are worth a word. */
const FEW = 3

function ProductCard({ product }: { product: Product }): JSX.Element {
  const { id, name, original_price: original, discounted_price: price, quantity, in_stock: isThere } = product
  const currency = hub.value?.currency ?? 'USD'
  const isClosed = hub.value?.closed_cabinets.some(({ cabinet }) => cabinet === product.cabinet)
  const canBuy = isThere && hub.value?.closed_reason === null && (cart.value?.processing_status ?? 0) === 0
  return (
    <li class="card bg-base-100 p-3 grid gap-2 content-between" data-product={id}>
      <div class="grid gap-1">
        <Picture url={product.image_url} large />
        <h2 class="font-medium break-words">{name}</h2>
        {product.is_bestseller && (
          <span class="badge badge-soft text-base-content">{words().bestseller}</span>
        )}
      </div>
      <div class="grid gap-2">
        <p>
          <span class="font-semibold">{money(price, currency)}</span>{' '}
          {price < original && (
            <span class="quiet text-sm">
              {filled(words().instead_of, { price: money(original, currency) })}
            </span>
          )}
          {isThere && quantity <= FEW && (
            <span class="quiet text-sm block">{filled(words().left, { count: quantity })}</span>
          )}
        </p>
        {!isThere ? (
          <p class="quiet min-h-11 flex items-center">{isClosed ? words().not_now : words().sold_out}</p>
        ) : quantityOf(id) > 0 && canBuy ? (
          <Quantity id={id} name={name} most={quantity} takesFocus />
        ) : (
          <button
            class="btn"
            aria-label={filled(words().add_one, { name })}
            disabled={!canBuy}
            onClick={() => {
              added = id
              void change(id, 1)
            }}
          >
            <Icon icon={Plus} /> {words().add}
          </button>
        )}
      </div>
    </li>
  )
}

const isWanted = (product: Product): boolean =>
  (category.value === '' || product.category === category.value) &&
  product.name.toLowerCase().includes(wanted.value.trim().toLowerCase())

export function ProductsView(): JSX.Element {
  const all = products.value
  if (!all) return <p class="quiet p-4">{words().loading}</p>
  const categories = [...new Set(all.map((product) => product.category))].toSorted()
  const shown = all.filter(isWanted).toSorted((one, other) => Number(other.in_stock) - Number(one.in_stock))
  return (
    <div class="grid gap-3">
      <h1 class="sr-only">{words().products}</h1>
      <div class="grid gap-2 sm:flex">
        <input
          class="input w-full"
          type="search"
          aria-label={words().search}
          placeholder={words().search}
          value={wanted.value}
          onInput={(event) => (wanted.value = event.currentTarget.value)}
        />
        <select
          class="select w-full sm:max-w-56"
          aria-label={words().categories}
          value={category.value}
          onChange={(event) => (category.value = event.currentTarget.value)}
        >
          <option value="">{words().all}</option>
          {categories.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      {shown.length === 0 && <p class="quiet">{all.length === 0 ? words().none_yet : words().none_found}</p>}
      <ul class="grid gap-3 grid-cols-2 sm:grid-cols-3 xl:grid-cols-4">
        {shown.map((product) => (
          <ProductCard key={product.id} product={product} />
        ))}
      </ul>
    </div>
  )
}
