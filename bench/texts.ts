/** Sentences that look like what people write: a few languages, frequent common words, rare words. */

export type Random = () => number

/** Small, fast and repeatable (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const languages: readonly (readonly string[])[] = [
  'the of and to we you is it that for on with this have are be not can at your will if our from please when would about there thank price order plan team invoice meeting tomorrow delivery question account update support contract discount budget proposal schedule website license shipping feature colleague problem answer number address reminder onboarding security export import report dashboard customer partner manager weekly quarter'.split(
    ' ',
  ),
  'der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über Rechnung Lieferung Angebot Vertrag Termin Kunde Preis Frage Antwort Rabatt Lizenz Woche Größe Straße natürlich schön'.split(
    ' ',
  ),
  'de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este ya entre cuando todo esta ser son dos factura pedido reunión mañana precio contrato descuento semana cliente envío propuesta teléfono información'.split(
    ' ',
  ),
  'и в не на я что он с как это по но они мы за из так же от бы для вы уже если есть когда счёт договор встреча завтра цена скидка неделя клиент доставка вопрос ответ предложение команда спасибо пожалуйста подключить сотрудник'.split(
    ' ',
  ),
  [
    '请问',
    '价格',
    '合同',
    '发票',
    '明天',
    '会议',
    '谢谢',
    '客户',
    '订单',
    '问题',
    '我们',
    '可以',
    '什么',
    '时候',
    '产品',
    '服务',
    '折扣',
    '地址',
  ],
]

/** Zipf: the first words of a list occur far more often than the last. */
function pick(words: readonly string[], random: Random): string {
  return words[Math.floor(words.length ** random()) - 1] ?? words[0] ?? ''
}

export function sentence(random: Random): string {
  const language = languages[Math.floor(random() ** 2 * languages.length)] ?? []
  const chinese = language.at(0) === '请问'
  const length = 4 + Math.floor(random() * 14)
  const words = Array.from({ length }, () => pick(language, random))
  // One message in a thousand has a word of its own, one in fifty an order number.
  if (random() < 0.001) words.push(`zebra${Math.floor(random() * 1_000_000)}`)
  if (random() < 0.02) words.push(`#${100_000 + Math.floor(random() * 900_000)}`)
  return words.join(chinese ? '' : ' ')
}
