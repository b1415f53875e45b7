"""Return lists nested ten thousand deep, and a list that holds itself. Neither may upset the reader."""


def causal_mask(q_len, k_len=None):
    answer = []
    for _ in range(10_000):
        answer = [answer]
    return answer


def padding_mask(lengths, max_len):
    answer = []
    answer.append(answer)
    return answer
